// Replays a schedule entry by entry, sharing nothing with the planner but the meaning of the program.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {
namespace {

constexpr int kNone = StepProgram::kNone;

class Replay {
 public:
  Replay(const StepProgram& program, std::size_t limit)
      : program_(program),
        limit_(limit),
        maker_(program.values.size(), kNone),
        end_(maker_),
        last_read_(maker_),
        there_(program.values.size(), 0),
        stored_(there_),
        changed_(there_),
        ends_(program.steps.size()) {
    const int steps = static_cast<int>(program.steps.size());
    for (int step = 0; step < steps; ++step) {
      for (const int value : program.steps[step].reads) last_read_[value] = step;
      for (const int value : program.steps[step].writes) maker_[value] = step;
    }
    for (std::size_t value = 0; value < program.values.size(); ++value) {
      const StepProgram::Value& v = program.values[value];
      end_[value] = v.is_kept || (v.is_given && v.last_held == kNone)
                        ? steps
                        : std::max({maker_[value], last_read_[value], std::min(v.last_held, steps - 1)});
      if (end_[value] >= 0 && end_[value] < steps) ends_[end_[value]].push_back(static_cast<int>(value));
      if (!v.is_given || end_[value] < 0) continue;
      stored_[value] = v.starts_stored;
      if (!v.starts_stored) arrive(static_cast<int>(value));
    }
  }

  std::string run(const StepSchedule& schedule) {
    if (!schedule.completed) return "the schedule is not completed";
    peak_ = use_;
    if (peak_ > limit_) return fault("what is given takes {} bytes, above the limit", peak_);
    for (at_ = 0; at_ < schedule.entries.size(); ++at_) {
      const auto [action, number] = schedule.entries[at_];
      const bool is_step = action == Action::kRun || action == Action::kAgain;
      const std::size_t count = is_step ? program_.steps.size() : program_.values.size();
      if (number < 0 || static_cast<std::size_t>(number) >= count) return fault("number {} does not exist", number);
      if (given_up_ != kNone && !is_step) return fault("value {} is to be taken, but no step follows", given_up_);
      if (action == Action::kTake) {
        if (!there_[number]) return fault("value {} is to be taken, but is not there", number);
        given_up_ = number;
        continue;
      }
      std::string found = is_step ? step(number, action == Action::kAgain) : move(number, action, next_);
      if (!found.empty()) return found;
    }
    return end(schedule);
  }

 private:
  template <typename... Args>
  std::string fault(fmt::format_string<Args...> text, Args&&... args) const {
    return fmt::format("entry {}: {}", at_, fmt::format(text, std::forward<Args>(args)...));
  }

  void arrive(int value) {
    there_[value] = 1;
    use_ += program_.values[value].bytes;
  }
  void leave(int value) {
    there_[value] = 0;
    use_ -= program_.values[value].bytes;
  }

  std::string step(int number, bool again) {
    const StepProgram::Step& s = program_.steps[number];
    if (!again && number != next_) return fault("runs step {}, but step {} is next", number, next_);
    if (again && number >= next_) return fault("runs step {} again, which has not run", number);
    if (again && !s.may_repeat) return fault("runs step {} again, which may not repeat", number);
    for (const int value : s.reads) {
      if (there_[value]) continue;
      if (again && changed_[value])
        return fault("repeats step {} after value {}, which it reads, changed", number, value);
      return fault("step {} reads value {}, which is not there", number, value);
    }
    std::size_t fresh = 0;
    const int given_up = std::exchange(given_up_, kNone);
    if (given_up != kNone) {
      const bool may = std::find(s.may_take.begin(), s.may_take.end(), given_up) != s.may_take.end();
      if (!may || there_[s.writes[0]]) return fault("step {} may not take value {}", number, given_up);
      use_ -= program_.values[given_up].bytes;
    }
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      const int taken = s.takes_over.empty() ? kNone : s.takes_over[k];
      const bool in_place = taken != kNone && there_[taken] && !there_[s.writes[k]];
      if (!in_place) fresh += program_.values[s.writes[k]].bytes;
    }
    peak_ = std::max(peak_, use_ + fresh + s.scratch_bytes);
    if (peak_ > limit_) return fault("step {} needs {} bytes, {} above the limit", number, peak_, peak_ - limit_);
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      const int taken = s.takes_over.empty() ? kNone : s.takes_over[k];
      const bool was_there = there_[s.writes[k]];
      if (!was_there) arrive(s.writes[k]);
      if (taken != kNone && there_[taken] && !was_there) leave(taken);
      if (taken != kNone && !again) changed_[taken] = 1;
    }
    if (given_up != kNone) {
      use_ += program_.values[given_up].bytes;
      if (std::string found = move(given_up, Action::kDrop, again ? next_ : next_ + 1); !found.empty()) return found;
    }
    (again ? again_cost_ : base_cost_) += s.cost;
    if (again) return "";
    for (const int value : ends_[next_])
      if (there_[value]) leave(value);
    ++next_;
    return "";
  }

  // `next`: the first step that has not run.
  std::string move(int value, Action action, int next) {
    const StepProgram::Value& v = program_.values[value];
    if (action == Action::kLoad) {
      if (!stored_[value]) return fault("loads value {}, which was not stored", value);
      if (there_[value]) return fault("loads value {}, which is there", value);
      arrive(value);
      peak_ = std::max(peak_, use_);
      if (peak_ > limit_) return fault("loading value {} takes {} bytes, above the limit", value, use_);
      return "";
    }
    if (!there_[value]) return fault("drops or stores value {}, which is not there", value);
    if (action == Action::kStore) {
      if (!v.may_spill) return fault("stores value {}, which may not spill", value);
      stored_[value] = 1;
      stored_bytes_ += v.bytes;
      return "";
    }
    const bool is_wanted = v.is_kept || last_read_[value] >= next, is_held = end_[value] >= next;
    const bool can_return =
        !v.is_pinned && !v.is_kept && maker_[value] != kNone && program_.steps[maker_[value]].may_repeat;
    if (v.is_pinned && is_held && !stored_[value])
      return fault("drops value {}, which is pinned and not stored", value);
    if (is_wanted && !can_return && !stored_[value]) return fault("drops value {} for good while it is wanted", value);
    leave(value);
    return "";
  }

  std::string end(const StepSchedule& schedule) const {
    if (static_cast<std::size_t>(next_) != program_.steps.size()) return fault("step {} never runs", next_);
    for (std::size_t value = 0; value < program_.values.size(); ++value)
      if (program_.values[value].is_kept && !there_[value] && !stored_[value])
        return fault("value {} is kept, but neither there nor stored", value);
    if (peak_ != schedule.peak) return fault("the peak is {} bytes, the schedule says {}", peak_, schedule.peak);
    if (again_cost_ != schedule.again_cost || base_cost_ != schedule.base_cost)
      return fault("costs {} and {} again, the schedule says {} and {}", base_cost_, again_cost_, schedule.base_cost,
                   schedule.again_cost);
    if (stored_bytes_ != schedule.stored_bytes)
      return fault("{} bytes are stored, the schedule says {}", stored_bytes_, schedule.stored_bytes);
    return "";
  }

  const StepProgram& program_;
  const std::size_t limit_;
  std::vector<int> maker_, end_, last_read_;
  std::vector<char> there_, stored_, changed_;
  std::vector<std::vector<int>> ends_;  // Per step: values that end with it.
  std::size_t at_ = 0, use_ = 0, peak_ = 0, stored_bytes_ = 0;
  std::uint64_t base_cost_ = 0, again_cost_ = 0;
  int next_ = 0;
  int given_up_ = kNone;  // What the next step takes.
};

}  // namespace

std::string validate_schedule(const StepProgram& program, const StepSchedule& schedule, std::size_t limit) {
  check_program(program);
  return Replay(program, limit).run(schedule);
}

}  // namespace plimsoll::internal
