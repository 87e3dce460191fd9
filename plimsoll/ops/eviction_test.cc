// Budgets that evict: what does not fit is dropped and computed again, with the same bytes and never beyond the limit.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/evict/eviction_testing.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/profile.h"
#include "plimsoll/tensor/task_run.h"
#include "plimsoll/tensor/tensor_pool.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/who_holds.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSize = 16384;  // Elements of most tensors here.
constexpr std::size_t kBytes = kSize * sizeof(float);

// Room for so many of them.
Budget room_for(std::size_t tensors, const char* name = "tight") {
  return Budget(name, tensors * kBytes, {.evict = true});
}

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

std::vector<float> sines(float offset) {
  std::vector<float> expected(kSize);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i % 64) + offset;
  return expected;
}
Tensor leaf() { return from_vector(sines(0)); }

TEST(Eviction, WorkThatDoesNotFitIsDroppedAndComputedAgain) {
  const MemoryInfo before = memory();
  const Budget budget = room_for(5);
  {
    const BudgetScope use(budget);
    const Tensor x = leaf();
    std::vector<Tensor> results;
    for (int i = 0; i < 12; ++i) results.push_back(x + static_cast<float>(i));
    EXPECT_EQ(memory().num_tensors - before.num_tensors, 13u);
    EXPECT_EQ(memory().num_data_buffers - before.num_data_buffers, 13u);
    EXPECT_EQ(memory().num_bytes - before.num_bytes, 5 * kBytes);
    EXPECT_EQ(memory().dropped_bytes - before.dropped_bytes, 8 * kBytes);
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 12; ++i)
        EXPECT_EQ(values(results[static_cast<std::size_t>(i)]), sines(static_cast<float>(i))) << i;
    EXPECT_LE(budget.peak(), budget.limit());
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().dropped_bytes, before.dropped_bytes);
}

TEST(Eviction, WithoutABudgetThatEvictsNothingIsDropped) {
  const Budget plain("plain", 4 * kBytes);
  const BudgetScope use(plain);
  const Tensor x = leaf();
  std::vector<Tensor> results;
  EXPECT_THROW(for (int i = 0; i < 12; ++i) results.push_back(x + static_cast<float>(i)), OutOfMemory);
  EXPECT_EQ(results.size(), 3u);
  EXPECT_EQ(memory().dropped_bytes, 0u);
}

TEST(Eviction, ALongChainOfDroppedResultsComesBackWithoutRecursion) {
  const Budget budget = room_for(6);
  const BudgetScope use(budget);
  std::vector<Tensor> chain = {leaf()};
  for (int i = 0; i < 3000; ++i) chain.push_back(chain.back() + 1.f);
  EXPECT_TRUE(is_dropped(chain[1500]));
  for (const std::size_t at : {std::size_t{2999}, std::size_t{1}, std::size_t{1500}})
    EXPECT_EQ(values(chain[at]), sines(static_cast<float>(at))) << at;
  EXPECT_LE(budget.peak(), budget.limit());
}

// What reading a result takes must not grow without end.
TEST(Eviction, RecipesGoThroughFreedResultsButNotThroughManyOfThem) {
  const Budget budget = room_for(6);
  const BudgetScope use(budget);
  const Tensor x = leaf();
  const auto after = [&](int steps) {
    Tensor y = x + 0.f;
    for (int i = 0; i < steps; ++i) y = y + 1.f;
    return y;
  };
  const Tensor near = after(40), far = after(100);
  EXPECT_TRUE(drop(near));
  EXPECT_FALSE(drop(far));
  EXPECT_EQ(values(near), sines(40));
  EXPECT_EQ(values(far), sines(100));
}

TEST(Eviction, FreedResultsThatWereFreedInReverseOrderDoNotPileUp) {
  const Budget budget("ample", 256_MiB, {.evict = true});
  const BudgetScope use(budget);
  Tensor x = from_vector(std::vector<float>(1024, 1.f));
  const auto round = [&] {
    std::vector<Tensor> all = {x};
    for (int i = 0; i < 300; ++i) all.push_back(all.back() + 1.f);
    x = all.back();
    while (!all.empty()) all.pop_back();
  };
  round();
  const std::size_t before = memory_overhead();
  for (int i = 0; i < 50; ++i) round();
  EXPECT_LE(memory_overhead(), before + 64_KiB);
}

TEST(Eviction, ALoopHasAFlatOverhead) {
  const Budget budget("ample", 16_MiB, {.evict = true});
  const BudgetScope use(budget);
  Tensor x = from_vector(std::vector<float>(64, 0.f));
  for (int i = 0; i < 1000; ++i) x = x + 1.f;
  const std::size_t before = memory_overhead(), peak = budget.peak();
  for (int i = 0; i < 100'000; ++i) x = x + 1.f;
  EXPECT_LE(memory_overhead(), before + 16_KiB);
  EXPECT_EQ(budget.peak(), peak);
  EXPECT_EQ(x.at<float>({3}), 101'000.f);
}

TEST(Eviction, AnAmpleBudgetHasThePeakOfOneThatDoesNotEvict) {
  const auto peak = [](bool evict) {
    const Budget budget("ample", 64 * kBytes, {.evict = evict});
    const BudgetScope use(budget);
    const Tensor x = leaf();
    Tensor y = (x + 1.f) * 2.f;
    for (int i = 0; i < 5; ++i) {
      Tensor z = relu((y * x + 1.f) - y);
      y = std::move(z) * 0.5f + x;
    }
    EXPECT_EQ(memory().dropped_bytes, 0u);
    return budget.peak();
  };
  EXPECT_EQ(peak(true), peak(false));
}

TEST(Eviction, AnOperandThatComesBackOnTheWayToAnotherStays) {
  const Budget budget = room_for(5);
  const BudgetScope use(budget);
  const Tensor x = leaf(), a = x + 1.f, b = a + 1.f, square = x.reshape({128, 128});
  ASSERT_TRUE(drop(a) && drop(b));
  const Tensor dear = matmul(square, square), dearer = matmul(square, square);
  const Tensor difference = b - a;  // Needs room; `a` is there before its turn, and the cheapest to drop.
  EXPECT_TRUE(is_dropped(dear) || is_dropped(dearer));
  EXPECT_EQ(values(difference), std::vector<float>(kSize, 1.f));
}

TEST(Eviction, ViewsShareADroppedBuffer) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = x + 1.f;
  const Tensor rows = y.reshape({128, 128}), part = rows.slice({1, 0}, {1, 128});
  ASSERT_TRUE(drop(y));
  EXPECT_TRUE(is_dropped(part));
  const Tensor later = y.reshape({64, 256});  // Takes no bytes.
  EXPECT_TRUE(is_dropped(y));
  EXPECT_EQ(part.at<float>({0, 3}), 4.f);
  EXPECT_FALSE(is_dropped(y));
  EXPECT_EQ(later.at<float>({0, 3}), 4.f);
  EXPECT_EQ(values(rows), sines(1));
}

TEST(Eviction, DisposingOfADroppedTensorIsNoLeakAndFreesNothing) {
  const Budget budget = room_for(3);
  const BudgetScope use(budget);
  const Tensor x = leaf();
  const LeakCheck check;
  std::vector<Tensor> results;
  for (int i = 0; i < 2; ++i) results.push_back(x + static_cast<float>(i));
  ASSERT_TRUE(drop(results[0]));
  const MemoryInfo before = memory();
  results[0].dispose();
  EXPECT_EQ(memory().num_tensors, before.num_tensors - 1);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers - 1);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().dropped_bytes, before.dropped_bytes - kBytes);
  EXPECT_THROW(results[0] + 1.f, Disposed);
  results.clear();
  check.expect_none();
  EXPECT_EQ(memory().dropped_bytes, 0u);
}

TEST(Eviction, TidyReleasesDroppedTensorsAndKeepsTheReturnedOne) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf();
  const std::size_t tensors = memory().num_tensors;
  const Tensor kept = tidy([&] {
    std::vector<Tensor> results;
    for (int i = 0; i < 3; ++i) results.push_back(x + static_cast<float>(i));
    EXPECT_TRUE(drop(results[1]) && drop(results[2]));
    return results[2];
  });
  EXPECT_EQ(memory().num_tensors, tensors + 1);
  EXPECT_EQ(values(kept), sines(2));
}

// Reading inside a tidy must not make what comes back end with it.
TEST(Eviction, WhatComesBackInsideOfATidyStays) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = x + 1.f, z = y + 1.f;
  ASSERT_TRUE(drop(y) && drop(z));
  const std::size_t tensors = memory().num_tensors;
  tidy([&] { EXPECT_EQ(values(z), sines(2)); });
  EXPECT_EQ(memory().num_tensors, tensors);
  EXPECT_EQ(values(y), sines(1));
  EXPECT_EQ(values(z), sines(2));
}

TEST(Eviction, BytesThatTheProgramLooksAtStayWhereTheyAre) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf();
  const Tensor y = x + 1.f;
  {
    const auto elements = y.data<float>();
    const auto again = elements;
    std::vector<Tensor> others;
    for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
    EXPECT_FALSE(is_dropped(y));
    EXPECT_EQ(elements[5], 6.f);
    EXPECT_EQ(y.data<float>().data(), elements.data());
  }
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
  EXPECT_TRUE(is_dropped(y));  // Nobody looks any more.
}

TEST(Eviction, DataOutlivesItsTensor) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  Tensor y = leaf() + 1.f;
  const auto elements = y.data<float>();
  y.dispose();
  EXPECT_EQ(elements[7], 8.f);
}

TEST(Eviction, WhatWasComputedFromTheProgramsMemoryIsNotDropped) {
  std::vector<float> memory_of_program(kSize, 1.f);
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = wrap(memory_of_program.data(), {kSize}, f32) + 1.f;
  memory_of_program.assign(kSize, 7.f);
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
  EXPECT_EQ(values(y), std::vector<float>(kSize, 2.f));
  EXPECT_FALSE(is_dropped(y));
}

TEST(Eviction, WhatWasComputedFromAPooledBufferIsNotDropped) {
  const Budget budget = room_for(5);
  const BudgetScope use(budget);
  TensorPool pool({.shape = {kSize}, .capacity = 1});
  const Tensor x = leaf();
  const auto lease = pool.acquire();
  const std::span<float> bytes = lease.data<float>();
  std::fill(bytes.begin(), bytes.end(), 1.f);
  const Tensor y = lease.tensor() + 1.f;
  std::fill(bytes.begin(), bytes.end(), 7.f);  // Through the view it had before.
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
  EXPECT_EQ(values(y), std::vector<float>(kSize, 2.f));
}

TEST(Eviction, VariablesAreNotDroppedAndUpdatedInPlace) {
  const Budget budget = room_for(5);
  const BudgetScope use(budget);
  const Variable w(leaf() + 1.f);  // Made by an operation that could be repeated.
  const void* const place = w.value().data<float>().data();
  std::vector<Tensor> results;
  for (int i = 0; i < 8; ++i) results.push_back(w.value() + static_cast<float>(i));
  EXPECT_FALSE(is_dropped(w.value()));
  ASSERT_TRUE(is_dropped(results[0]));
  results.erase(results.begin() + 1, results.end());
  w.assign_add(ones({kSize}));
  EXPECT_EQ(w.value().data<float>().data(), place);
  EXPECT_EQ(values(w.value()), sines(2));
  EXPECT_FALSE(is_dropped(results[0]));  // It came back before.
  EXPECT_EQ(values(results[0]), sines(1));
}

TEST(Eviction, ResultsOfAnOldValueKeepItWhenTheVariableChanges) {
  const Budget budget = room_for(8);
  const BudgetScope use(budget);
  const Variable w(leaf());
  const Tensor old = w.value() * 2.f, deep = old + w.value();
  ASSERT_TRUE(drop(old) && drop(deep));
  std::vector<float> twice = sines(0), thrice = sines(0);
  for (float& each : twice) each *= 2;
  for (float& each : thrice) each *= 3;
  w.assign(zeros({kSize}));  // Another buffer: the old one is kept for what was dropped.
  EXPECT_EQ(values(deep), thrice);
  EXPECT_EQ(values(old), twice);
  w.assign_sub(ones({kSize}));
  EXPECT_EQ(values(deep), thrice);
  EXPECT_EQ(values(old), twice);
}

TEST(Eviction, AWriteThatHasNoRoomForWhatItWouldSpoilChangesNothing) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Variable w(leaf());
  std::vector<Tensor> results;
  for (int i = 0; i < 6; ++i) results.push_back(w.value() + static_cast<float>(i));
  const Tensor one = constant(1.f).reshape({1});
  EXPECT_THROW(w.assign_add(zeros({kSize})), OutOfMemory);
  EXPECT_EQ(values(w.value()), sines(0));
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(values(results[i]), sines(static_cast<float>(i)));
}

TEST(Eviction, AnInputThatNobodyHoldsIsKeptWhileDroppedResultsNeedIt) {
  const Budget budget = room_for(5);
  const BudgetScope use(budget);
  const Tensor other = leaf();
  Tensor x = leaf();
  const Tensor y = x * 2.f;
  ASSERT_TRUE(drop(y));
  x.dispose();
  EXPECT_EQ(budget.used(), 2 * kBytes);  // Both inputs.
  EXPECT_EQ(y.at<float>({3}), 6.f);
  std::vector<Tensor> others;
  for (int i = 0; i < 6; ++i) others.push_back(other + static_cast<float>(i));  // Pressure ends what nobody needs.
  EXPECT_FALSE(is_dropped(y));
  EXPECT_EQ(y.at<float>({3}), 6.f);
  others.clear();
  EXPECT_EQ(memory().num_data_buffers, memory().num_tensors);
}

TEST(Eviction, RandomNumbersAreDrawnOnce) {
  config::set_seed(5);
  const auto run = [](const Budget& budget) {
    config::set_seed(5);
    const BudgetScope use(budget);
    const Tensor noise = random_normal({kSize}), seeded = random_uniform({kSize}, {.seed = 3});
    const Tensor sum = noise + seeded;
    for (const Tensor* each : {&noise, &seeded, &sum}) drop(*each);
    std::vector<std::vector<float>> all = {values(noise), values(sum), values(seeded)};
    all.push_back(values(random_normal({8})));  // The stream goes on where it was.
    return all;
  };
  const Budget tight = room_for(4);
  EXPECT_EQ(run(tight), run(Budget("ample", 64_MiB)));
}

TEST(Eviction, ResultsThatCameTogetherComeBackTogether) {
  const Budget budget = room_for(7);
  const BudgetScope use(budget);
  const Tensor x = leaf();
  std::vector<Tensor> parts = split(x.reshape({4, kSize / 4}), 2, 0);
  const Tensor first = parts[0] + 1.f, second = parts[1] + 1.f;
  std::vector<Tensor> others;
  for (int i = 0; i < 12; ++i) others.push_back(x + static_cast<float>(i));
  others.clear();
  EXPECT_EQ(first.at<float>({0, 5}), 6.f);
  EXPECT_EQ(second.at<float>({0, 5}), 6.f);
  EXPECT_LE(budget.peak(), budget.limit());
}

// Not to be repeated: what it gives depends on how often it ran.
class Count final : public OpOf<Count> {
 public:
  explicit Count(int* runs) : runs_(runs) {}
  const char* name() const noexcept override { return "count"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override {
    std::fill_n(run.out[0].data<float>(), run.out[0].size(), static_cast<float>(++*runs_));
  }
  OpFacts facts() const noexcept override { return {.is_pure = false, .has_gradient = false}; }

 private:
  int* runs_;
};

TEST(Eviction, OperationsWithEffectsAreNotRepeated) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  int runs = 0;
  const Tensor x = leaf(), once = execute(Count(&runs), x);
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
  EXPECT_EQ(once.at<float>({0}), 1.f);
  EXPECT_EQ(runs, 1);
}

TEST(Eviction, ARefusalSaysWhatIsLeftAndChangesNothing) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = leaf(), z = leaf(), sum = x + y;
  try {
    const Tensor w = leaf(), more = leaf();
    FAIL() << "five inputs in the room of four";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("drop what can be recomputed (0 B)"));
    EXPECT_THAT(error.what(), HasSubstr("nothing is left to drop"));
    EXPECT_EQ(error.limit(), budget.limit());
  }
  std::vector<float> twice = sines(0);
  for (float& each : twice) each *= 2;
  EXPECT_EQ(values(sum), twice);
  EXPECT_THROW(zeros({8 * kSize}), OutOfMemory);  // More than it could ever have: nothing is dropped for it.
  EXPECT_FALSE(is_dropped(sum));
}

TEST(Eviction, RecomputingWithoutEndIsRefused) {
  const Budget budget = room_for(3);
  const BudgetScope use(budget);
  std::vector<Tensor> chain = {leaf()};
  for (int i = 0; i < 1000; ++i) chain.push_back(chain.back() + 1.f);
  const auto read = [&](int times) {
    for (int i = 0; i < times; ++i) chain[static_cast<std::size_t>(1 + i * 331 % 1000)].data<float>();
  };
  read(4);
  try {
    read(100'000);
    FAIL() << "millions of operations were repeated";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("eviction gave up"));
  }
  EXPECT_EQ(values(chain[1000]), sines(1000));  // Once more it tries.
}

TEST(Eviction, AFailedRecomputationNamesTheOperation) {
  const Budget budget = room_for(5);
  Tensor y, x;
  {
    const BudgetScope use(budget);
    x = leaf();
    y = relu(x - 1.f);
    ASSERT_TRUE(drop(y));
  }
  {
    const Budget none("none", 64);
    const BudgetScope use(none);
    try {
      values(y);
      FAIL();
    } catch (const OutOfMemory& error) {
      EXPECT_THAT(error.what(), HasSubstr("it was computing \"subtract\" again"));
      EXPECT_THAT(error.what(), HasSubstr("\"relu\""));
    }
  }
  EXPECT_TRUE(is_dropped(y));
  EXPECT_EQ(y.at<float>({3}), 2.f);  // Outside all budgets.
  EXPECT_EQ(budget.used(), kBytes);
}

TEST(Eviction, AReaderOutsideOfTheScopePaysItself) {
  const Budget budget = room_for(4), reader("reader", 4 * kBytes);
  Tensor x, y;
  {
    const BudgetScope use(budget);
    x = leaf();
    y = x + 1.f;
    ASSERT_TRUE(drop(y));
  }
  const std::size_t used = budget.used();
  const BudgetScope use(reader);
  const Tensor z = y * 1.f;
  EXPECT_EQ(values(z), sines(1));
  EXPECT_EQ(reader.used(), 2 * kBytes);
  EXPECT_EQ(budget.used(), used);
}

TEST(Eviction, NobodyElsesTensorsAreDropped) {
  const Budget process("process", 8 * kBytes);
  const Budget first("first", 6 * kBytes, process, {.evict = true}),
      second("second", 6 * kBytes, process, {.evict = true});
  std::vector<Tensor> ours, theirs;
  {
    const BudgetScope use(first);
    ours.push_back(leaf());
    for (int i = 0; i < 3; ++i) ours.push_back(ours[0] + static_cast<float>(i));
  }
  {
    const BudgetScope use(second);  // The parent is at its limit with four more: it is its own that go.
    theirs.push_back(leaf());
    for (int i = 0; i < 8; ++i) theirs.push_back(theirs[0] + static_cast<float>(i));
    EXPECT_TRUE(is_dropped(theirs[1]));
  }
  for (const Tensor& each : ours) EXPECT_FALSE(is_dropped(each));
  EXPECT_LE(process.peak(), process.limit());
  {
    const BudgetScope use(process);  // Does not evict.
    EXPECT_THROW(leaf(), OutOfMemory);
  }
  const Budget strict("strict", 2 * kBytes, first);  // Below one that evicts, but refuses itself.
  const BudgetScope use(strict);
  const Tensor x = ours[0] + 9.f, y = x + 1.f;
  EXPECT_THROW(ours[0] + 5.f, OutOfMemory);
}

TEST(Eviction, ABudgetAboveMayDropWhatIsBelowIt) {
  const Budget outer("outer", 5 * kBytes, {.evict = true}), inner("inner", 5 * kBytes, outer, {.evict = true});
  std::vector<Tensor> results;
  {
    const BudgetScope use(inner);
    results.push_back(leaf());
    for (int i = 0; i < 3; ++i) results.push_back(results[0] + static_cast<float>(i));
  }
  const BudgetScope use(outer);
  for (int i = 3; i < 9; ++i) results.push_back(results[0] + static_cast<float>(i));
  EXPECT_TRUE(is_dropped(results[1]));
  for (std::size_t i = 1; i < results.size(); ++i) EXPECT_EQ(values(results[i]), sines(static_cast<float>(i) - 1)) << i;
  EXPECT_LE(outer.peak(), outer.limit());
}

TEST(Eviction, DroppedTensorsOutliveTheirBudget) {
  Tensor x, y;
  {
    const Budget budget = room_for(3);
    const BudgetScope use(budget);
    x = leaf();
    y = x + 1.f;
    std::vector<Tensor> others;
    for (int i = 0; i < 6; ++i) others.push_back(x + static_cast<float>(i));
  }
  ASSERT_TRUE(is_dropped(y));
  EXPECT_EQ(values(y + 1.f), sines(2));
  EXPECT_EQ(values(y), sines(1));
}

TEST(Eviction, TheLedgerHasARowForADroppedTensor) {
  const Budget budget = room_for(3);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = relu(x);
  ASSERT_TRUE(drop(y));
  std::size_t bytes = 0;
  bool found = false;
  for (const LiveTensor& row : live_tensors()) {
    bytes += row.bytes;
    if (row.id != y.id()) continue;
    found = true;
    EXPECT_EQ(row.op, "relu");
    EXPECT_EQ(row.bytes, 0u);
    EXPECT_EQ(row.category, "activations");
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(bytes, memory().num_bytes);
  EXPECT_THAT(who_holds(y).to_string(), HasSubstr("dropped"));
}

TEST(Eviction, ProfilesSeeTheProgramsOperationsOnly) {
  const Budget budget = room_for(3);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = relu(x);
  ASSERT_TRUE(drop(y));
  const ProfileInfo seen = profile([&] { const Tensor z = y + 1.f; });
  EXPECT_EQ(seen.kernels.size(), 1u);
}

TEST(Eviction, WhatComesBackHasTheLabelItHad) {
  const Budget budget = room_for(3);
  const BudgetScope use(budget);
  const Tensor x = leaf(), y = relu(x);
  const BlockLabel label = y.record()->storage.load()->chunk()->label;
  ASSERT_TRUE(drop(y));
  y.data<float>();
  const BlockLabel& again = y.record()->storage.load()->chunk()->label;
  EXPECT_STREQ(again.op, label.op);
  EXPECT_EQ(again.category, label.category);
  EXPECT_EQ(again.step, label.step);
  EXPECT_EQ(again.rank, label.rank);
}

Task<float> sum_later(Tensor x) { co_return (x + 1.f).sum().item<float>(); }

TEST(Eviction, TasksReadDroppedTensors) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = from_vector(std::vector<float>(kSize, 1.f)), y = x + 1.f;
  ASSERT_TRUE(drop(y));
  EXPECT_EQ(run(sum_later(y)), 3.f * kSize);
  EXPECT_LE(budget.peak(), budget.limit());
}

TEST(Eviction, EveryAllocationMayFail) {
  const auto work = [](const Tensor& x) {
    const Tensor a = x + 1.f, b = a * a, c = relu(b - a), d = (c + b) * a,
                 e = matmul(d.reshape({128, 128}), c.reshape({128, 128}));
    return values(e + b.reshape({128, 128}));
  };
  const Tensor x = leaf();
  const std::vector<float> expected = work(x);
  const MemoryInfo before = memory();
  std::size_t refused = 0, done = 0;
  for (std::size_t limit = kBytes / 2; limit < 8 * kBytes; limit += kBytes / 8) {
    const Budget budget("tight", limit, {.evict = true});
    {
      const BudgetScope use(budget);
      try {
        EXPECT_EQ(work(x), expected) << limit;
        ++done;
      } catch (const OutOfMemory&) {
        ++refused;
        EXPECT_EQ(done, 0u) << "refused at " << limit << " though less was enough";
      }
    }
    EXPECT_LE(budget.peak(), limit);
    EXPECT_EQ(budget.used(), 0u) << limit;
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers) << limit;
    EXPECT_EQ(memory().num_bytes, before.num_bytes) << limit;
    EXPECT_EQ(memory().dropped_bytes, 0u) << limit;
  }
  EXPECT_GT(refused, 4u);
  EXPECT_GT(done, 20u);
}

}  // namespace
}  // namespace plimsoll
