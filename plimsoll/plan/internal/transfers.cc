#include "plimsoll/plan/internal/transfers.h"

#include <algorithm>

namespace plimsoll::internal {
namespace {

constexpr int kNone = StepProgram::kNone;

class Transfers {
 public:
  Transfers(const StepFacts& facts, std::size_t limit, double bytes_per_cost, StepSchedule& schedule)
      : facts_(facts), limit_(limit), speed_(bytes_per_cost), schedule_(schedule) {}

  void settle() {
    measure();
    advance_loads();
    advance_stores();
    measure();
    schedule_.stall_cost = replay();
    schedule_.peak = *std::max_element(use_.begin(), use_.end());
  }

 private:
  std::uint64_t length(int value) const {
    return static_cast<std::uint64_t>(static_cast<double>(facts_.bytes(value)) / speed_) + 1;
  }
  bool is_step(const StepSchedule::Entry& entry) const {
    return entry.action == Action::kRun || entry.action == Action::kAgain;
  }
  // Whether the entry there is a step that takes a value's bytes: nothing may come between them.
  bool takes(std::size_t at) const { return at > 0 && schedule_.entries[at - 1].action == Action::kTake; }
  std::uint64_t cost(const StepSchedule::Entry& entry) const {
    return is_step(entry) ? facts_.program.steps[entry.number].cost : 0;
  }
  bool touches(const StepSchedule::Entry& entry, int value) const {
    if (!is_step(entry)) return entry.number == value;
    const StepProgram::Step& s = facts_.program.steps[entry.number];
    return std::find(s.reads.begin(), s.reads.end(), value) != s.reads.end() ||
           std::find(s.writes.begin(), s.writes.end(), value) != s.writes.end();
  }

  // The bytes in use during each entry.
  void measure() {
    std::vector<char> there(facts_.program.values.size(), 0);
    std::size_t bytes = 0;
    const auto set = [&](int value, bool is_there) {
      if (there[value] == static_cast<char>(is_there)) return;
      there[value] = is_there;
      bytes += is_there ? facts_.bytes(value) : 0 - facts_.bytes(value);
    };
    for (int value = 0; value < facts_.value_count(); ++value) {
      const StepProgram::Value& v = facts_.program.values[value];
      if (v.is_given && !v.starts_stored && facts_.last_held[value] >= 0) set(value, true);
    }
    use_.clear();
    for (const StepSchedule::Entry& entry : schedule_.entries) {
      std::size_t during = 0;
      if (is_step(entry)) {
        const StepProgram::Step& s = facts_.program.steps[entry.number];
        during = s.scratch_bytes;
        for (std::size_t k = 0; k < s.writes.size(); ++k) {
          const int taken = facts_.taken_over(entry.number, k);
          if (there[s.writes[k]])
            during += facts_.bytes(s.writes[k]);
          else if (taken != kNone)
            set(taken, false);
          set(s.writes[k], true);
        }
        during += bytes;
        if (entry.action == Action::kRun)
          for (const int value : facts_.ends[entry.number]) set(value, false);
      } else {
        if (entry.action == Action::kLoad) set(entry.number, true);
        during = bytes;  // Before a drop: a load that moves up past it must fit there.
        if (entry.action == Action::kDrop || entry.action == Action::kTake) set(entry.number, false);
      }
      use_.push_back(during);
    }
  }

  // A load moves up until what runs meanwhile covers it, or the bytes are not free, or the value leaves there.
  void advance_loads() {
    std::uint64_t queued = 0;  // Of loads just before, not covered yet.
    for (std::size_t at = 0; at < schedule_.entries.size(); ++at) {
      const StepSchedule::Entry entry = schedule_.entries[at];
      queued -= std::min(queued, cost(entry));
      if (entry.action != Action::kLoad) continue;
      const std::size_t bytes = facts_.bytes(entry.number);
      const std::uint64_t wanted = length(entry.number) + queued;
      std::uint64_t covered = 0;
      std::size_t to = at;
      while (to > 0 && covered < wanted) {
        const StepSchedule::Entry& before = schedule_.entries[to - 1];
        if (use_[to - 1] + bytes > limit_ || before.action == Action::kLoad || touches(before, entry.number)) break;
        covered += cost(before);
        --to;
      }
      while (to < at && takes(to)) covered -= std::min(covered, cost(schedule_.entries[to++]));
      queued = wanted - std::min(wanted, covered);
      for (std::size_t k = at; k > to; --k) {
        schedule_.entries[k] = schedule_.entries[k - 1];
        use_[k] = use_[k - 1] + bytes;
      }
      schedule_.entries[to] = entry;
    }
  }

  void advance_stores() {
    for (std::size_t at = 0; at < schedule_.entries.size(); ++at) {
      const StepSchedule::Entry entry = schedule_.entries[at];
      if (entry.action != Action::kStore) continue;
      std::uint64_t covered = 0;
      std::size_t to = at;
      while (to > 0 && covered < 4 * length(entry.number) && schedule_.entries[to - 1].action != Action::kStore &&
             !touches(schedule_.entries[to - 1], entry.number)) {
        --to;
        covered += cost(schedule_.entries[to]);
      }
      while (to < at && takes(to)) ++to;
      std::rotate(schedule_.entries.begin() + static_cast<std::ptrdiff_t>(to),
                  schedule_.entries.begin() + static_cast<std::ptrdiff_t>(at),
                  schedule_.entries.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  // The time that steps and drops wait.
  std::uint64_t replay() const {
    std::vector<std::uint64_t> done(facts_.program.values.size(), 0);  // When its last transfer ends.
    std::uint64_t now = 0, link_free = 0, stall = 0;
    const auto wait_for = [&](int value) {
      if (done[value] <= now) return;
      stall += done[value] - now;
      now = done[value];
    };
    for (const StepSchedule::Entry& entry : schedule_.entries) {
      if (entry.action == Action::kStore || entry.action == Action::kLoad) {
        done[entry.number] = link_free = std::max(link_free, now) + length(entry.number);
      } else if (entry.action == Action::kDrop) {
        wait_for(entry.number);
      } else {
        for (const int value : facts_.program.steps[entry.number].reads) wait_for(value);
        now += cost(entry);
      }
    }
    return stall;
  }

  const StepFacts& facts_;
  const std::size_t limit_;
  const double speed_;
  StepSchedule& schedule_;
  std::vector<std::size_t> use_;
};

}  // namespace

void settle_transfers(const StepFacts& facts, std::size_t limit, double bytes_per_cost, StepSchedule& schedule) {
  if (!schedule.entries.empty()) Transfers(facts, limit, bytes_per_cost, schedule).settle();
}

}  // namespace plimsoll::internal
