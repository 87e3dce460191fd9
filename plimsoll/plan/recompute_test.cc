#include "plimsoll/plan/recompute.h"

#include <gmock/gmock.h>

#include <memory>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/recompute_testing.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr int kNone = StepProgram::kNone;

bool same(const StepSchedule& a, const StepSchedule& b) {
  return a.completed == b.completed && a.entries == b.entries && a.peak == b.peak && a.again_cost == b.again_cost &&
         a.stall_cost == b.stall_cost && a.lower_bound == b.lower_bound && a.work == b.work;
}

std::size_t between(const Floors& floors, unsigned seed, std::size_t floor) {
  return floor + seed * 7919u % (floors.natural_peak - std::min(floor, floors.natural_peak) + 2);
}

TEST(Recompute, RunsTheNaturalOrderWhenItFits) {
  const StepProgram program = training_step(4);
  const StepSchedule schedule = recompute(program, floors_of(program).natural_peak);
  EXPECT_TRUE(schedule.completed);
  EXPECT_EQ(schedule.entries.size(), program.steps.size());
  EXPECT_EQ(schedule.extra_cost(), 0u);
  EXPECT_EQ(schedule.cost_factor(), 1.0);
  EXPECT_EQ(schedule.peak, floors_of(program).natural_peak);
}

TEST(Recompute, FloorsNameTheStepThatMakesThem) {
  StepProgram program;
  program.values = {{.bytes = 100, .is_given = true}, {.bytes = 10}, {.bytes = 50}, {.bytes = 7, .is_kept = true}};
  program.steps = {{.reads = {0}, .writes = {1}, .cost = 3},
                   {.reads = {1}, .writes = {2}, .scratch_bytes = 5, .cost = 4},
                   {.reads = {2}, .writes = {3}, .cost = 5}};
  const Floors floors = floors_of(program);
  EXPECT_EQ(floors.natural_peak, 165u);  // 0, 1, 2 and scratch.
  EXPECT_EQ(floors.recompute.bytes, 165u);
  EXPECT_EQ(floors.recompute.step, 1);
  EXPECT_EQ(floors.spill.bytes, 165u);  // Nothing may spill.
  program.values[0].may_spill = true;
  EXPECT_EQ(floors_of(program).spill.bytes, 110u);
  EXPECT_EQ(floors_of(program).spill.step, 0);
}

TEST(Recompute, HalvesTheActivationsOfAChain) {
  const StepProgram program = training_step(16);
  const Floors floors = floors_of(program);
  const std::size_t limit = floors.recompute.bytes + (floors.natural_peak - floors.recompute.bytes) / 2;
  const StepSchedule schedule = recompute(program, limit);
  ASSERT_TRUE(schedule.completed);
  EXPECT_EQ(validate_schedule(program, schedule, limit), "");
  EXPECT_LT(schedule.cost_factor(), 1.35);
  EXPECT_GE(schedule.again_cost, schedule.lower_bound);
  EXPECT_GT(schedule.lower_bound, 0u);
}

TEST(Recompute, RandomProgramsStayWithinRandomLimits) {
  int completed = 0, tried = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    const StepProgram program = random_program(
        seed, {.steps = 5 + static_cast<int>(seed % 60), .most_bytes = seed % 2 ? 20u : 4u, .may_take = true});
    const Floors floors = floors_of(program);
    const std::size_t limit = between(floors, seed, floors.recompute.bytes);
    const StepSchedule schedule = recompute(program, limit, {.work = 100'000});
    ++tried;
    if (!schedule.completed) continue;
    ++completed;
    ASSERT_EQ(validate_schedule(program, schedule, limit), "") << "seed " << seed << ", limit " << limit;
    ASSERT_LE(schedule.peak, limit);
    ASSERT_GE(schedule.again_cost, schedule.lower_bound) << "seed " << seed;
    EXPECT_FALSE(
        recompute(program, floors.recompute.bytes - std::min<std::size_t>(1, floors.recompute.bytes), {.work = 20'000})
            .completed &&
        floors.recompute.bytes > 0);
  }
  EXPECT_GT(completed, tried * 4 / 10);  // Few of them can be done at all near their floors.
}

TEST(Recompute, APlannerOfSeveralLimitsBeginsAsRecomputeAndStaysWithinEach) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const StepProgram program = random_program(seed);
    const Floors floors = floors_of(program);
    const RecomputeOptions options{.work = 20'000, .attempt_work = 40'000};
    RecomputePlanner planner(program), other(program);
    for (std::size_t k = 0; k <= 8; ++k) {
      const std::size_t limit = floors.natural_peak - (floors.natural_peak - floors.recompute.bytes) * k / 8;
      const StepSchedule schedule = planner.within(limit, options);
      if (k == 0) {
        EXPECT_TRUE(same(schedule, recompute(program, limit, options)));
      }
      EXPECT_TRUE(same(schedule, other.within(limit, options)));
      if (schedule.completed) {
        EXPECT_EQ(validate_schedule(program, schedule, limit), "");
      }
    }
  }
}

TEST(Recompute, RandomProgramsSpillWithinRandomLimits) {
  int stored = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const StepProgram program = random_program(seed, {.steps = 5 + static_cast<int>(seed % 40),
                                                      .most_bytes = seed % 2 ? 20u : 4u,
                                                      .may_spill = true,
                                                      .may_take = true});
    const Floors floors = floors_of(program);
    ASSERT_LE(floors.spill.bytes, floors.recompute.bytes);
    const std::size_t limit = between(floors, seed, floors.spill.bytes);
    const StepSchedule schedule = recompute(program, limit, {.spill_bytes_per_cost = 0.5 + seed % 20, .work = 100'000});
    if (!schedule.completed) continue;
    stored += schedule.stored_bytes > 0;
    ASSERT_EQ(validate_schedule(program, schedule, limit), "") << "seed " << seed << ", limit " << limit;
  }
  EXPECT_GT(stored, 50);
}

TEST(Recompute, BeingAllowedToStoreNeverCostsMore) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const StepProgram program = random_program(seed, {.steps = 40, .may_spill = true});
    const Floors floors = floors_of(program);
    const std::size_t limit = between(floors, seed, floors.recompute.bytes);
    const StepSchedule without = recompute(program, limit, {.work = 50'000});
    const StepSchedule with = recompute(program, limit, {.spill_bytes_per_cost = 0.1 + seed % 7, .work = 50'000});
    if (!without.completed) continue;
    ASSERT_TRUE(with.completed) << "seed " << seed;
    EXPECT_LE(with.extra_cost(), without.extra_cost()) << "seed " << seed;
  }
}

TEST(Recompute, OnlinePoliciesStayWithinRandomLimits) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const StepProgram program = random_program(seed, {.steps = 40, .may_spill = seed % 2 == 0});
    const Floors floors = floors_of(program);
    const std::size_t limit = between(floors, seed, floors.recompute.bytes);
    for (const OnlinePolicy policy : {OnlinePolicy::kOnline, OnlinePolicy::kDtr, OnlinePolicy::kLru}) {
      const StepSchedule schedule =
          recompute_online(program, limit, policy, {.spill_bytes_per_cost = seed % 2 == 0 ? 3.0 : 0});
      if (schedule.completed) {
        ASSERT_EQ(validate_schedule(program, schedule, limit), "") << "seed " << seed;
      }
    }
  }
}

TEST(Recompute, IsTheSameTwiceAndForOtherAddresses) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const StepProgram program = random_program(seed, {.steps = 50, .may_spill = true});
    const Floors floors = floors_of(program);
    const std::size_t limit = (floors.recompute.bytes + floors.natural_peak) / 2;
    const RecomputeOptions options{.spill_bytes_per_cost = seed % 2 * 2.0, .work = 100'000};
    const StepSchedule first = recompute(program, limit, options);
    std::vector<std::unique_ptr<char[]>> clutter;
    auto moved = std::make_unique<StepProgram>();
    for (const auto& value : program.values) {
      clutter.push_back(std::make_unique<char[]>(17 + seed * 64));
      moved->values.push_back(value);
    }
    for (auto step = program.steps.rbegin(); step != program.steps.rend(); ++step)
      moved->steps.insert(moved->steps.begin(), *step);
    EXPECT_TRUE(same(first, recompute(*moved, limit, options))) << "seed " << seed;
  }
}

TEST(Recompute, FrontIsMonotoneAndItsGateIsTrue) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const StepProgram program = seed < 6 ? training_step(4 + 4 * seed) : random_program(seed, {.steps = 40});
    const Front front = recompute_front(program);
    ASSERT_FALSE(front.schedules.empty());
    const std::size_t gate = front.smallest_peak();
    EXPECT_EQ(front.cheapest_within(gate), &front.schedules.back());
    EXPECT_EQ(front.cheapest_within(gate - 1), nullptr);
    EXPECT_GE(gate, floors_of(program).recompute.bytes);
    EXPECT_EQ(front.cheapest_within(floors_of(program).natural_peak)->extra_cost(), 0u);
    std::uint64_t cost = UINT64_MAX;
    for (std::size_t limit = gate; limit <= floors_of(program).natural_peak; ++limit) {
      const StepSchedule& schedule = *front.cheapest_within(limit);
      ASSERT_LE(schedule.extra_cost(), cost);
      cost = schedule.extra_cost();
      limit += floors_of(program).natural_peak / 100;
    }
    for (const StepSchedule& schedule : front.schedules)
      ASSERT_EQ(validate_schedule(program, schedule, schedule.peak), "");
  }
}

TEST(Recompute, FrontLeavesOutWhatIsNotAccepted) {
  const StepProgram program = training_step(12);
  const std::size_t least = floors_of(program).natural_peak * 3 / 4;
  const Front front =
      recompute_front(program, {}, [&](const StepSchedule& schedule) { return schedule.peak >= least; });
  EXPECT_GE(front.smallest_peak(), least);
  EXPECT_LT(recompute_front(program).smallest_peak(), least);
}

TEST(Recompute, ChainReachesItsFloorNearly) {
  const StepProgram program = training_step(32);
  const Front front = recompute_front(program);
  EXPECT_LE(static_cast<double>(front.smallest_peak()), 1.25 * static_cast<double>(floors_of(program).recompute.bytes));
}

TEST(Recompute, TenThousandStepsTakeBoundedWork) {
  const StepProgram program = training_step(2500);
  ASSERT_GT(program.steps.size(), 10'000u);
  const Floors floors = floors_of(program);
  const std::size_t limit = floors.recompute.bytes + (floors.natural_peak - floors.recompute.bytes) / 10;
  const StepSchedule schedule = recompute(program, limit);
  ASSERT_TRUE(schedule.completed);
  EXPECT_EQ(validate_schedule(program, schedule, limit), "");
  EXPECT_LT(schedule.work, 60'000'000u);  // At about 20 ns.
  EXPECT_LT(schedule.cost_factor(), 1.6);
}

TEST(Recompute, NeverRepeatsAReaderOfAChangedVariable) {
  // Value 2 is read after the variable 1 that it was made from has changed: it must stay.
  StepProgram program;
  program.values = {{.bytes = 10, .is_given = true},
                    {.bytes = 10, .is_given = true},
                    {.bytes = 10},
                    {.bytes = 10, .is_kept = true},
                    {.bytes = 10},
                    {.bytes = 1, .is_kept = true}};
  program.steps = {{.reads = {0, 1}, .writes = {2}, .cost = 1},
                   {.reads = {1}, .writes = {3}, .takes_over = {1}, .cost = 1, .may_repeat = false},
                   {.reads = {0}, .writes = {4}, .scratch_bytes = 10, .cost = 1},
                   {.reads = {2, 4}, .writes = {5}, .cost = 1}};
  EXPECT_EQ(floors_of(program).recompute.bytes, 50u);
  EXPECT_TRUE(recompute(program, 50).completed);
  EXPECT_FALSE(recompute(program, 49).completed);
}

TEST(Recompute, StoresWhatMayNotBeDropped) {
  StepProgram program = training_step(8, 100, 1000);
  for (auto& value : program.values) value.may_spill = true;
  for (int parameter = 1; parameter <= 8; ++parameter) program.values[parameter].starts_stored = true;
  const Floors floors = floors_of(program);
  ASSERT_LT(floors.spill.bytes, floors.recompute.bytes / 2);
  const std::size_t limit = floors.recompute.bytes / 2;
  EXPECT_FALSE(recompute(program, limit).completed);
  const StepSchedule slow = recompute(program, limit, {.spill_bytes_per_cost = 2});
  const StepSchedule fast = recompute(program, limit, {.spill_bytes_per_cost = 1000});
  ASSERT_TRUE(slow.completed && fast.completed);
  EXPECT_EQ(validate_schedule(program, slow, limit), "");
  EXPECT_GT(slow.stall_cost, fast.stall_cost);
  EXPECT_GT(fast.stored_bytes, 0u);
}

TEST(Recompute, RefusesProgramsThatDoNotHoldTogether) {
  const StepProgram good = training_step(2);
  const auto refused = [&](auto change) {
    StepProgram bad = good;
    change(bad);
    try {
      recompute(bad, 1000);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused([](StepProgram& p) { p.steps[1].reads[0] = 99; }), HasSubstr("step 1: value 99 does not exist"));
  EXPECT_THAT(refused([](StepProgram& p) { p.steps[0].reads[0] = -1; }), HasSubstr("value -1 does not exist"));
  EXPECT_THAT(refused([](StepProgram& p) { std::swap(p.steps[0], p.steps[1]); }), HasSubstr("before it is written"));
  EXPECT_THAT(refused([](StepProgram& p) { p.steps[1].writes = p.steps[0].writes; }), HasSubstr("was there before"));
  EXPECT_THAT(refused([](StepProgram& p) {
                p.steps.back().takes_over = {}, p.steps.back().takes_over = {0, 1};
              }),
              HasSubstr("takes over 2 values for 1 writes"));
  EXPECT_THAT(refused([](StepProgram& p) { p.values[1].bytes += 1; }), HasSubstr("another size"));
  EXPECT_THAT(refused([](StepProgram& p) { p.values[1].bytes = SIZE_MAX; }), HasSubstr("too large"));
  EXPECT_THAT(refused([](StepProgram& p) { p.steps[0].cost = UINT64_MAX; }), HasSubstr("cost"));
}

// What is wrong with a schedule that was right until `change`.
template <typename Change>
std::string fault_after(const Change& change, std::size_t slack = 0) {
  const StepProgram program = training_step(8);
  const Floors floors = floors_of(program);
  const std::size_t limit = (floors.recompute.bytes + floors.natural_peak) / 2;
  StepSchedule schedule = recompute(program, limit);
  EXPECT_EQ(validate_schedule(program, schedule, limit), "");
  change(schedule);
  return validate_schedule(program, schedule, limit + slack);
}

TEST(ValidateSchedule, FindsEachKindOfFault) {
  using Entry = StepSchedule::Entry;
  const auto first = [](StepSchedule& s, Action action) {
    return std::find_if(s.entries.begin(), s.entries.end(), [&](const Entry& entry) { return entry.action == action; });
  };
  EXPECT_THAT(fault_after([](StepSchedule& s) { s.completed = false; }), HasSubstr("not completed"));
  EXPECT_THAT(fault_after([](StepSchedule& s) { s.entries.pop_back(); }), HasSubstr("never runs"));
  EXPECT_THAT(fault_after([](StepSchedule& s) { std::swap(s.entries[0], s.entries[1]); }), HasSubstr("step 0 is next"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) { s.entries.erase(first(s, Action::kDrop)); }),
              HasSubstr("above the limit"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) { s.entries.erase(first(s, Action::kAgain)); }), HasSubstr("not there"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) {
                s.entries.insert(s.entries.end(), {Action::kAgain, 11});
              }),
              HasSubstr("may not repeat"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) {
                s.entries.insert(s.entries.begin(), {Action::kAgain, 3});
              }),
              HasSubstr("has not run"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) { s.entries.push_back({Action::kAgain, 0}); }), HasSubstr("changed"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) {
                s.entries.insert(s.entries.begin(), {Action::kDrop, 1});
              }),
              HasSubstr("drops value 1 for good"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) {
                s.entries.insert(s.entries.begin(), {Action::kLoad, 1});
              }),
              HasSubstr("was not stored"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) {
                s.entries.insert(s.entries.begin(), {Action::kStore, 1});
              }),
              HasSubstr("may not spill"));
  EXPECT_THAT(fault_after([&](StepSchedule& s) { s.entries[0].number = 1000; }), HasSubstr("does not exist"));
  EXPECT_THAT(fault_after([](StepSchedule& s) { s.peak += 1; }), HasSubstr("the schedule says"));
  EXPECT_THAT(fault_after([](StepSchedule& s) { s.again_cost += 1; }), HasSubstr("the schedule says"));
  EXPECT_THAT(fault_after([](StepSchedule& s) { s.stored_bytes += 1; }), HasSubstr("are stored"));
}

}  // namespace
}  // namespace plimsoll
