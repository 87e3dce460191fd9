// Steps in budgets that evict while the heap fails: recipes that cannot be kept are not, and nothing is left behind.
#include <gtest/gtest.h>

#include <new>

#include "plimsoll/autograd/eviction_testing.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

TEST(EvictionHeap, MayFailAnywhere) {
  const Tensor x = random_normal({64, 64}, {.seed = 1});
  const Variable w(random_normal({64, 64}, {.seed = 2}) * 0.1f);
  const auto step = [&] {
    GradientTape tape;
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = relu(matmul(h, w) + x);
    return tape.gradient(square(h).mean(), w).to_vector<float>();
  };
  const std::vector<float> expected = step();
  const Budget budget("tight", 160_KiB, {.evict = true});
  const BudgetScope use(budget);
  EXPECT_EQ(step(), expected);
  const MemoryInfo before = memory();
  std::size_t failures = 0, done = 0;
  for (std::size_t successes = 0;; ++successes) {
    fail_heap_after(successes);
    try {
      const std::vector<float> gradient = step();
      if (!disarm_heap()) break;
      EXPECT_EQ(gradient, expected) << successes;
      ++done;
    } catch (const std::bad_alloc&) {
      disarm_heap();
      ++failures;
    } catch (const OutOfMemory&) {  // A recipe was not kept: its result could not be dropped.
      disarm_heap();
      ++failures;
    }
    EXPECT_EQ(budget.used(), 0u) << successes;
    EXPECT_EQ(memory().num_tensors, before.num_tensors) << successes;
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers) << successes;
    EXPECT_EQ(memory().dropped_bytes, 0u) << successes;
  }
  EXPECT_GT(failures, 10u);
  EXPECT_GT(done, 0u);
  EXPECT_EQ(step(), expected);
  EXPECT_LE(budget.peak(), budget.limit());
}

}  // namespace
}  // namespace plimsoll
