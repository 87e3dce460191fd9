// The limits of all schedules: floors in bytes, and the least cost within a limit.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/internal/step_facts.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {
namespace {

[[noreturn]] void refuse(int step, const std::string& reason) {
  throw InvalidArgument(fmt::format("recompute: step {}: {}", step, reason));
}

// Walks through a program in its own order and knows which values are there.
class ProgramCheck {
 public:
  explicit ProgramCheck(const StepProgram& program) : program_(program), state_(program.values.size(), kUnwritten) {}

  void run() {
    for (std::size_t value = 0; value < program_.values.size(); ++value) {
      add(StepProgram::kNone, program_.values[value].bytes);
      if (program_.values[value].is_given) state_[value] = kThere;
    }
    std::uint64_t cost = 0;
    for (int step = 0; step < static_cast<int>(program_.steps.size()); ++step) {
      check(step);
      if (program_.steps[step].cost > std::numeric_limits<std::uint64_t>::max() / 64 - cost)
        refuse(step,
               fmt::format("its cost {} makes the sum of costs too large to multiply", program_.steps[step].cost));
      cost += program_.steps[step].cost;
    }
  }

 private:
  enum State : char { kUnwritten, kThere, kTaken };

  void add(int step, std::size_t bytes) {
    if (bytes > std::numeric_limits<std::size_t>::max() / 4 - sum_)
      refuse(step, fmt::format("with these {} bytes the sum of sizes is too large", bytes));
    sum_ += bytes;
  }

  State& at(int step, int value) {
    if (value < 0 || static_cast<std::size_t>(value) >= state_.size())
      refuse(step, fmt::format("value {} does not exist; there are {}", value, state_.size()));
    return state_[value];
  }

  void check(int step) {
    const StepProgram::Step& s = program_.steps[step];
    add(step, s.scratch_bytes);
    for (const int value : s.reads) {
      if (at(step, value) == kUnwritten) refuse(step, fmt::format("reads value {} before it is written", value));
      if (at(step, value) == kTaken) refuse(step, fmt::format("reads value {} after it was taken over", value));
    }
    if (!s.takes_over.empty() && s.takes_over.size() != s.writes.size())
      refuse(step, fmt::format("takes over {} values for {} writes", s.takes_over.size(), s.writes.size()));
    for (std::size_t k = 0; k < s.takes_over.size(); ++k) {
      const int taken = s.takes_over[k], value = s.writes[k];
      if (taken == StepProgram::kNone) continue;
      if (at(step, taken) != kThere) refuse(step, fmt::format("takes over value {}, which is not there", taken));
      at(step, value);
      if (program_.values[taken].bytes != program_.values[value].bytes || program_.values[taken].is_kept)
        refuse(step, fmt::format("value {} takes over value {} of another size, or one that is kept", value, taken));
      state_[taken] = kTaken;
    }
    for (const int value : s.may_take)
      if (std::find(s.reads.begin(), s.reads.end(), value) == s.reads.end() || s.writes.empty() ||
          program_.values[value].bytes != program_.values[s.writes[0]].bytes)
        refuse(step, fmt::format("may take value {}, which it does not read, or of another size", value));
    for (const int value : s.writes) {
      if (at(step, value) != kUnwritten) refuse(step, fmt::format("writes value {}, which was there before", value));
      state_[value] = kThere;
    }
  }

  const StepProgram& program_;
  std::vector<State> state_;
  std::size_t sum_ = 0;
};

// Largest over steps of the values that must stay, and of what the step itself touches. A value must stay from the step
// `stays_from(value)` on, if that is not kNever.
template <typename StaysFrom>
Floor floor_of(const StepFacts& facts, const StaysFrom& stays_from) {
  std::vector<std::vector<int>> begins(facts.step_count());  // Per step: values that must stay from it on, made before.
  std::size_t staying = 0;
  for (int value = 0; value < facts.value_count(); ++value) {
    const int from = stays_from(value);
    const bool is_given = facts.maker[value] == StepProgram::kNone;
    if (is_given && facts.last_held[value] >= 0 && from == 0) staying += facts.bytes(value);
    if (!is_given && from > facts.maker[value] && from < facts.step_count()) begins[from].push_back(value);
  }
  Floor floor;
  std::vector<int> read_in(facts.value_count(), StepProgram::kNone);
  for (int step = 0; step < facts.step_count(); ++step) {
    const StepProgram::Step& s = facts.program.steps[step];
    for (const int value : begins[step])
      if (facts.last_held[value] >= step) staying += facts.bytes(value);
    std::size_t touched = s.scratch_bytes, more = 0;
    const auto stays = [&](int value) { return stays_from(value) <= step; };
    for (const int value : s.reads) {
      if (!stays(value) && read_in[value] != step) touched += facts.bytes(value);
      read_in[value] = step;
    }
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      const int value = s.writes[k], taken = facts.taken_over(step, k);
      if (taken == StepProgram::kNone || (!stays(taken) && read_in[taken] != step)) touched += facts.bytes(value);
      if (stays(value)) more += facts.bytes(value);
    }
    if (staying + touched > floor.bytes || floor.step == StepProgram::kNone) floor = {staying + touched, step};
    staying += more;
    for (const int value : facts.ends[step])
      if (stays(value)) staying -= facts.bytes(value);
  }
  return floor;
}

// A value that could be away at some step, with what a byte of it costs to bring back.
struct Candidate {
  double cost_per_byte;
  std::size_t bytes;
};

// At least this much is spent on bringing `excess` bytes back.
double least_cost(std::vector<Candidate>& candidates, std::size_t excess) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.cost_per_byte < b.cost_per_byte; });
  double cost = 0;
  for (const Candidate& each : candidates) {
    const std::size_t away = std::min(excess, each.bytes);
    cost += each.cost_per_byte * static_cast<double>(away);
    excess -= away;
    if (excess == 0) return cost;
  }
  return cost;
}

// The cost of recomputing, besides its own maker, what the value took over: by makers that write nothing else.
std::uint64_t cost_taken_over(const StepFacts& facts, int value) {
  std::uint64_t cost = 0;
  for (;;) {
    const StepProgram::Step& s = facts.program.steps[facts.maker[value]];
    if (s.writes.size() != 1 || s.takes_over.empty() || s.takes_over[0] == StepProgram::kNone) return cost;
    value = s.takes_over[0];
    if (!facts.is_free[value] || facts.program.steps[facts.maker[value]].writes.size() != 1) return cost;
    if (std::find(s.reads.begin(), s.reads.end(), value) == s.reads.end()) return cost;
    cost += facts.program.steps[facts.maker[value]].cost;
  }
}

// The bytes in use at each step when nothing is dropped.
std::vector<std::size_t> natural_use(const StepFacts& facts) {
  std::vector<std::size_t> use;
  std::size_t bytes = 0;
  for (int value = 0; value < facts.value_count(); ++value)
    if (facts.program.values[value].is_given && facts.last_held[value] >= 0) bytes += facts.bytes(value);
  for (int step = 0; step < facts.step_count(); ++step) {
    const StepProgram::Step& s = facts.program.steps[step];
    std::size_t replaced = 0;
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      bytes += facts.bytes(s.writes[k]);
      if (const int taken = facts.taken_over(step, k); taken != StepProgram::kNone) replaced += facts.bytes(taken);
    }
    use.push_back(bytes - replaced + s.scratch_bytes);
    for (const int value : facts.ends[step]) bytes -= facts.bytes(value);
  }
  return use;
}

// Values that live at the step, could be dropped and are not touched by it. Values of one maker share its cost.
std::vector<Candidate> candidates_at(const StepFacts& facts, int step) {
  std::vector<int> live;
  std::vector<std::size_t> shared(facts.step_count(), 0);
  const auto comes_back = [&](int value) { return facts.last_read(value) > step; };
  const StepProgram::Step& s = facts.program.steps[step];
  for (int value = 0; value < facts.value_count(); ++value) {
    if (!facts.is_free[value] || facts.stays_from[value] <= step || facts.maker[value] > step ||
        facts.last_held[value] < step)
      continue;
    if (comes_back(value)) shared[facts.maker[value]] += facts.bytes(value);
    if (facts.bytes(value) == 0 || facts.maker[value] == step || facts.taken_by[value] == step) continue;
    if (std::find(s.reads.begin(), s.reads.end(), value) == s.reads.end() ||
        std::find(s.may_take.begin(), s.may_take.end(), value) != s.may_take.end())
      live.push_back(value);
  }
  std::vector<Candidate> candidates;
  for (const int value : live) {
    const int maker = facts.maker[value];
    const double bytes = static_cast<double>(facts.bytes(value));
    const double cost = static_cast<double>(facts.program.steps[maker].cost) / static_cast<double>(shared[maker]) +
                        static_cast<double>(cost_taken_over(facts, value)) / bytes;
    candidates.push_back({comes_back(value) ? cost : 0, facts.bytes(value)});
  }
  return candidates;
}

}  // namespace

void check_program(const StepProgram& program) { ProgramCheck(program).run(); }

Floors floors_of(const StepProgram& program) {
  check_program(program);
  const StepFacts facts(program);
  const auto unless_spilled = [&](int value) {
    return program.values[value].may_spill ? kNever : facts.stays_from[value];
  };
  return {.natural_peak = floor_of(facts, [](int) { return 0; }).bytes,
          .recompute = floor_of(facts, [&](int value) { return facts.stays_from[value]; }),
          .spill = floor_of(facts, unless_spilled)};
}

std::uint64_t recompute_bound(const StepProgram& program, std::size_t limit) {
  check_program(program);
  return bound_of(StepFacts(program), limit);
}

std::uint64_t bound_of(const StepFacts& facts, std::size_t limit) {
  if (limit < floor_of(
                  facts, [&](int value) { return facts.stays_from[value]; })
                  .bytes)
    return std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::size_t> use = natural_use(facts);
  std::vector<int> steps;
  for (int step = 0; step < facts.step_count(); ++step)
    if (use[step] > limit) steps.push_back(step);
  constexpr std::size_t kLookedAt = 64;  // The fullest; looking at all would be quadratic.
  std::stable_sort(steps.begin(), steps.end(), [&](int a, int b) { return use[a] > use[b]; });
  steps.resize(std::min(steps.size(), kLookedAt));
  double bound = 0;
  for (const int step : steps) {
    std::vector<Candidate> candidates = candidates_at(facts, step);
    bound = std::max(bound, least_cost(candidates, use[step] - limit));
  }
  return static_cast<std::uint64_t>(bound * (1 - 1e-9));  // Sums of quotients round; a bound must not.
}

}  // namespace plimsoll::internal
