// Against all schedules there are, on programs small enough to look at every one.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <queue>

#include "plimsoll/plan/recompute_testing.h"

namespace plimsoll {
namespace {

// The least cost of steps that run again, over all schedules within the limit: a shortest path through states
// (next step, values that are there).
class AllSchedules {
 public:
  AllSchedules(const StepProgram& program, std::size_t limit) : program_(program), limit_(limit) {
    for (const StepProgram::Step& step : program.steps) {
      for (const int value : step.reads) last_[value] = number_;
      for (const int value : step.writes) maker_[value] = last_[value] = number_;
      ++number_;
    }
    for (std::size_t value = 0; value < program.values.size(); ++value) {
      const StepProgram::Value& v = program.values[value];
      if (v.is_kept || v.is_given) last_[static_cast<int>(value)] = number_;
      if (v.is_given) start_ |= bit(static_cast<int>(value));
    }
  }

  std::optional<std::uint64_t> least() {
    visit({0, start_}, 0);
    while (!open_.empty()) {
      const auto [cost, state] = open_.top();
      open_.pop();
      if (cost > best_[state]) continue;
      if (state.first == number_) return cost;
      for (int value = 0; value < static_cast<int>(program_.values.size()); ++value)
        if ((state.second & bit(value)) != 0 && may_drop(value)) visit({state.first, state.second & ~bit(value)}, cost);
      for (int step = 0; step <= state.first; ++step) run(state, step, cost);
    }
    return std::nullopt;
  }

 private:
  using State = std::pair<int, std::uint64_t>;
  static std::uint64_t bit(int value) { return std::uint64_t{1} << value; }

  bool may_drop(int value) {
    const StepProgram::Value& v = program_.values[value];
    return !v.is_given && !v.is_kept && !v.is_pinned;
  }
  std::size_t bytes(std::uint64_t there) const {
    std::size_t sum = 0;
    for (std::size_t value = 0; value < program_.values.size(); ++value)
      if ((there & bit(static_cast<int>(value))) != 0) sum += program_.values[value].bytes;
    return sum;
  }

  void run(const State& state, int step, std::uint64_t cost) {
    const StepProgram::Step& s = program_.steps[step];
    const bool again = step < state.first;
    if (again && !s.may_repeat) return;
    std::uint64_t there = state.second;
    for (const int value : s.reads)
      if ((there & bit(value)) == 0) return;
    std::size_t fresh = 0;
    const std::size_t before = bytes(there);
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      const int taken = s.takes_over.empty() ? StepProgram::kNone : s.takes_over[k];
      const bool is_there = (state.second & bit(s.writes[k])) != 0;
      const bool in_place = taken >= 0 && (there & bit(taken)) != 0 && !is_there;
      if (!in_place) fresh += program_.values[s.writes[k]].bytes;
      if (in_place) there &= ~bit(taken);
      there |= bit(s.writes[k]);
    }
    if (before + fresh + s.scratch_bytes > limit_) return;
    if (!again)
      for (const auto& [value, end] : last_)
        if (end == step) there &= ~bit(value);
    visit({again ? state.first : step + 1, there}, cost + (again ? s.cost : 0));
  }

  void visit(const State& state, std::uint64_t cost) {
    const auto [place, is_new] = best_.try_emplace(state, cost);
    if (!is_new && place->second <= cost) return;
    place->second = cost;
    open_.emplace(cost, state);
  }

  const StepProgram& program_;
  const std::size_t limit_;
  int number_ = 0;
  std::uint64_t start_ = 0;
  std::map<int, int> maker_, last_;
  std::map<State, std::uint64_t> best_;
  std::priority_queue<std::pair<std::uint64_t, State>, std::vector<std::pair<std::uint64_t, State>>, std::greater<>>
      open_;
};

StepProgram tiny_program(unsigned seed) {
  StepProgram program = random_program(seed, {.steps = 7, .most_writes = 1 + static_cast<int>(seed % 5 == 0)});
  for (auto& value : program.values) value.last_held = StepProgram::kNone;  // Ends with its last reader.
  return program;
}

TEST(RecomputeExact, NeverBeatsTheOptimumAndTheBoundNeverPassesIt) {
  int feasible = 0, completed = 0, optimal = 0;
  double factor = 0, least_factor = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const StepProgram program = tiny_program(seed);
    const Floors floors = floors_of(program);
    for (std::size_t limit = floors.recompute.bytes; limit < floors.natural_peak;
         limit += 1 + floors.natural_peak / 8) {
      const std::optional<std::uint64_t> least = AllSchedules(program, limit).least();
      const std::uint64_t bound = recompute_bound(program, limit);
      const StepSchedule schedule = recompute(program, limit, {.work = 40'000});
      if (!least) {
        ASSERT_FALSE(schedule.completed) << "seed " << seed << ", limit " << limit;
        continue;
      }
      ASSERT_LE(bound, *least) << "seed " << seed << ", limit " << limit;
      ++feasible;
      if (!schedule.completed) continue;
      ASSERT_EQ(validate_schedule(program, schedule, limit), "");
      ASSERT_GE(schedule.again_cost, *least) << "seed " << seed << ", limit " << limit;
      ++completed;
      optimal += schedule.again_cost == *least;
      factor += schedule.cost_factor();
      least_factor +=
          1 + static_cast<double>(*least) / static_cast<double>(std::max<std::uint64_t>(schedule.base_cost, 1));
    }
  }
  RecordProperty("feasible", feasible);
  RecordProperty("completed", completed);
  RecordProperty("optimal", optimal);
  EXPECT_GT(feasible, 200);
  EXPECT_GE(completed, feasible * 93 / 100) << feasible;
  EXPECT_GE(optimal, completed * 93 / 100) << completed;
  EXPECT_LE(factor, least_factor * 1.03);
}

TEST(RecomputeExact, NothingRunsBelowTheFloor) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const StepProgram program = tiny_program(seed);
    const std::size_t floor = floors_of(program).recompute.bytes;
    if (floor == 0) continue;
    ASSERT_FALSE(AllSchedules(program, floor - 1).least()) << "seed " << seed;
    ASSERT_EQ(recompute_bound(program, floor - 1), UINT64_MAX);
  }
}

}  // namespace
}  // namespace plimsoll
