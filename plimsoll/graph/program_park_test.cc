// Programs that keep variables in a spill file between their uses: the same bits, less memory, and as a whole or not at
// all.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/graph/park_variable.h"
#include "plimsoll/graph/training_step_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr double kQuick = 2;

struct ParkPlace {
  SpillFolder folder;
  FaultyIo io;
  SpillFile file{{.directory = folder.path(), .own_staging_bytes = 64 << 10, .io = &io}};
};

// Weights take 9 KiB each, as do their momenta; biases stay in memory.
TrainingStep::Options wide_step(unsigned seed) {
  return {.inside = seed % 3 != 0, .assigns = seed % 2 == 0, .rows = 32, .width = 48, .spill_bytes_per_cost = kQuick};
}

// From the initial state, with variables in the file: plans that want them in memory need more than others.
void restore(TrainingStep& step, SpillFile& file) {
  step.restore();
  config::set_seed(5);
  for (const Variable& variable : step.variables()) park_variable(variable, file);
}

Outcome run(TrainingStep& step, int steps, const Budget& budget, SpillFile& file) {
  restore(step, file);
  Outcome outcome;
  for (int i = 0; i < steps; ++i) step.run_once({.budget = &budget, .spill = &file, .parks_variables = true}, outcome);
  for (const auto& bytes : step.state()) outcome.bytes.push_back(bytes);
  outcome.bytes.push_back(TrainingStep::bytes_of(random_uniform({8})));
  return outcome;
}

std::vector<ProgramPoint> parked_points(TrainingStep& step) {
  std::vector<ProgramPoint> points = step.program().points(Eviction::kSpillVariables);
  std::erase_if(points, [](const ProgramPoint& point) { return point.parked_bytes == 0; });
  return points;
}

TEST(ProgramPark, GivesTheSameBytesWithinEveryBudget) {
  ParkPlace place;
  std::size_t pairs = 0, parked = 0;
  const char* const more = std::getenv("PLIMSOLL_MORE_PROGRAMS");  // For long runs: so many times as many.
  const unsigned programs = 6 * static_cast<unsigned>(more ? std::max(1, std::atoi(more)) : 1);
  for (unsigned seed = 1; seed <= programs; ++seed) {
    TrainingStep step(seed, wide_step(seed));
    const Outcome natural = step.run({.steps = 3});
    for (const ProgramPoint& point : parked_points(step)) {
      const Budget budget("step", point.bytes);
      const Outcome lean = run(step, 3, budget, place.file);
      EXPECT_TRUE(lean.bytes == natural.bytes) << "seed " << seed << ", " << point.bytes << " bytes";
      EXPECT_LE(budget.peak(), point.bytes);
      EXPECT_EQ(budget.used(), 0u);
      ++pairs;
      parked += lean.spilled_bytes > 0;
    }
  }
  EXPECT_GE(parked, 12u);
  EXPECT_GE(parked, pairs / 2);
  EXPECT_EQ(place.file.stats().failures, 0u);
}

// Every call of the file fails once, those that park variables included. The old bytes stay where they are.
TEST(ProgramPark, ChangesNothingWhenACallOfTheFileFails) {
  std::size_t failed = 0;
  TrainingStep step(3, wide_step(3));
  const Outcome natural = step.run();
  const std::vector<ProgramPoint> points = parked_points(step);
  ASSERT_FALSE(points.empty());
  const std::size_t bytes = points.back().bytes;
  for (const FaultyIo::Call call : {FaultyIo::kAllocate, FaultyIo::kWrite, FaultyIo::kRead})
    for (std::size_t number = 0;; ++number) {
      ParkPlace place;
      step.restore();
      const auto before = step.state();
      restore(step, place.file);
      place.io.fail(call, place.io.calls(call) + number, {.error_number = EIO});
      const Budget budget("step", bytes);
      Outcome outcome;
      bool is_refused = false;
      try {
        step.run_once({.budget = &budget, .spill = &place.file, .parks_variables = true}, outcome);
      } catch (const Error& error) {
        is_refused = true;
        EXPECT_THAT(error.what(), HasSubstr("errno 5"));
        EXPECT_TRUE(step.state() == before) << "call " << call << " number " << number;
      }
      EXPECT_EQ(budget.used(), 0u);
      if (!is_refused) break;
      if (++failed % 8 == 1) {
        EXPECT_TRUE(run(step, 2, budget, place.file).bytes == natural.bytes) << "the next time";
      }
    }
  EXPECT_GT(failed, 20u);
}

TEST(ProgramPark, ChangesNothingWhenOtherBytesComeBack) {
  TrainingStep step(3, wide_step(3));
  ParkPlace place;
  const Budget budget("step", parked_points(step).back().bytes);
  step.restore();
  const auto before = step.state();
  restore(step, place.file);
  place.io.fail(FaultyIo::kRead, place.io.calls(FaultyIo::kRead), {.corrupts = true});
  Outcome outcome;
  EXPECT_THROW(step.run_once({.budget = &budget, .spill = &place.file, .parks_variables = true}, outcome), Corruption);
  EXPECT_TRUE(step.state() == before);
}

TEST(ProgramPark, ChangesNothingWhenTheHeapIsFull) {
  TrainingStep step(3, wide_step(3));
  const std::size_t bytes = parked_points(step).back().bytes;
  std::size_t failures = 0;
  for (std::size_t after = 0;; after += 1 + after / 8) {
    ParkPlace place;
    step.restore();
    const auto before = step.state();
    restore(step, place.file);
    step.program().release_slots();
    const Budget budget("step", bytes);
    Outcome outcome;
    bool is_refused = false;
    fail_heap_after(after);
    try {
      step.run_once({.budget = &budget, .spill = &place.file, .parks_variables = true, .keeps = false}, outcome);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    } catch (const Error&) {  // Of a file that has no thread.
      is_refused = true;
    }
    if (!disarm_heap()) break;
    if (!is_refused) continue;  // Sorting does without a buffer.
    ++failures;
    EXPECT_TRUE(step.state() == before) << after;
    EXPECT_EQ(budget.used(), 0u) << after;
    ASSERT_LT(failures, 200u);
  }
  EXPECT_GT(failures, 5u);
}

TEST(ProgramPark, VariablesStayInTheFileUntilTheyAreRead) {
  TrainingStep step(3, wide_step(3));
  ParkPlace place;
  const Budget budget("step", parked_points(step).back().bytes);
  const std::size_t parked_before = memory().spilled_bytes;
  restore(step, place.file);
  Outcome outcome;
  const TrainingStep::RunOptions options{.budget = &budget, .spill = &place.file, .parks_variables = true};
  step.run_once(options, outcome);
  const std::size_t parked = memory().spilled_bytes - parked_before, resident = memory().num_bytes;
  EXPECT_GE(parked, 3u * 48 * 48 * 4);
  const auto state = step.state();  // Reads all of them.
  EXPECT_EQ(memory().spilled_bytes, parked_before);
  EXPECT_GE(memory().num_bytes, resident + parked);
  const std::uint64_t stores = place.file.stats().stores;
  for (const Variable& variable : step.variables()) park_variable(variable, place.file);
  EXPECT_EQ(place.file.stats().stores, stores) << "the file has what was only read";
  step.run_once(options, outcome);
  EXPECT_EQ(memory().spilled_bytes, parked_before + parked);
  TrainingStep other(3, wide_step(3));
  other.restore();
  config::set_seed(5);
  Outcome expected;
  other.run_once({}, expected);
  EXPECT_TRUE(other.state() == state);
  other.run_once({}, expected);
  EXPECT_TRUE(other.state() == step.state());
  EXPECT_TRUE(outcome.bytes == expected.bytes);
  EXPECT_GT(place.file.stats().stores, stores);
}

// A snapshot is what the variable was, however often it changes in the file.
TEST(ProgramPark, SnapshotsKeepTheirBytes) {
  TrainingStep step(5, wide_step(5));
  ParkPlace place;
  const Budget budget("step", parked_points(step).back().bytes);
  const TrainingStep::RunOptions options{.budget = &budget, .spill = &place.file, .parks_variables = true};
  restore(step, place.file);
  Outcome outcome;
  step.run_once(options, outcome);
  std::vector<Tensor> snapshots;
  for (const Variable& variable : step.variables()) snapshots.push_back(variable.value());
  TrainingStep other(5, wide_step(5));
  other.restore();
  config::set_seed(5);
  other.run_once({}, outcome);
  const auto expected = other.state();
  const Budget more("step", budget.limit() + (1 << 20));  // What others hold is copied first.
  step.run_once({.budget = &more, .spill = &place.file, .parks_variables = true}, outcome);
  for (std::size_t i = 0; i < snapshots.size(); ++i)
    EXPECT_TRUE(TrainingStep::bytes_of(snapshots[i]) == expected[i]) << i;
  EXPECT_FALSE(step.state() == expected);
}

TEST(ProgramPark, OthersMayReadWhileItRuns) {
  TrainingStep step(7, wide_step(7));
  ParkPlace place;
  const Budget budget("step", parked_points(step).back().bytes + (1 << 20));
  restore(step, place.file);
  std::atomic<bool> ends{false};
  std::atomic<std::size_t> reads{0};
  std::vector<Variable> parameters = step.variables();  // Slots are read through their optimizer, which locks them.
  std::erase_if(parameters,
                [](const Variable& variable) { return variable.name().find("/velocity") != std::string::npos; });
  ASSERT_EQ(2 * parameters.size(), step.variables().size());
  std::thread reader([&] {
    while (!ends || reads == 0)
      for (const Variable& variable : parameters) reads += !TrainingStep::bytes_of(variable.value()).empty();
  });
  Outcome outcome;
  config::set_seed(5);
  for (int i = 0; i < 40; ++i)
    step.run_once({.budget = &budget, .spill = &place.file, .parks_variables = true}, outcome);
  ends = true;
  reader.join();
  TrainingStep other(7, wide_step(7));
  other.restore();
  config::set_seed(5);
  for (int i = 0; i < 40; ++i) other.run_once({}, outcome);
  EXPECT_TRUE(step.state() == other.state());
  EXPECT_GT(reads, 0u);
}

TEST(ProgramPark, SmallVariablesAndThoseOfOthersStayInMemory) {
  ParkPlace place;
  const Variable small(zeros({8})), large(ones({64, 64}));
  EXPECT_FALSE(park_variable(small, place.file));
  {
    const Tensor held = large.value();
    EXPECT_FALSE(park_variable(large, place.file));
  }
  EXPECT_TRUE(park_variable(large, place.file));
  EXPECT_TRUE(park_variable(large, place.file)) << "a second time does nothing";
  EXPECT_EQ(place.file.stats().stores, 1u);
  EXPECT_EQ(large.value().sum().item<float>(), 4096.f);
  large.assign_add(ones({64, 64}));
  EXPECT_TRUE(park_variable(large, place.file));
  EXPECT_EQ(place.file.stats().stores, 2u);
  const Variable twin(zeros({64, 64}));
  twin.assign(large.value());  // Shares what is in the file.
  EXPECT_EQ(twin.value().sum().item<float>(), 8192.f);
  unpark_variable(large);
  EXPECT_EQ(large.value().sum().item<float>(), 8192.f);
}

TEST(ProgramPark, IsRefusedBeforeTheFirstStepWhenTheDiskIsTooSmall) {
  TrainingStep step(3, wide_step(3));
  ParkPlace place;
  const SpillFile small({.directory = place.folder.path(), .limit = 16384, .own_staging_bytes = 4096, .io = &place.io});
  SpillFile file = small;
  const Budget budget("step", parked_points(step).back().bytes);
  step.restore();
  const auto before = step.state();
  restore(step, place.file);
  Outcome outcome;
  try {
    step.run_once({.budget = &budget, .spill = &file, .parks_variables = true}, outcome);
    ADD_FAILURE() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("spill directory"));
  }
  EXPECT_TRUE(step.state() == before);
}

}  // namespace
}  // namespace plimsoll
