// Budgets that evict and name a directory: what cannot be recomputed, or not cheaply, is stored there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/who_holds.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSize = 16384;  // Elements of most tensors here.
constexpr std::size_t kBytes = kSize * sizeof(float);

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }
std::vector<float> numbers(float offset) {
  std::vector<float> expected(kSize);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i % 64) + offset;
  return expected;
}

// As a tape does while it computes gradients: results are not recorded, so they cannot be recomputed.
struct AsGradients : CategoryGuard {
  AsGradients() : CategoryGuard(Category::kGradients) {}
};

class EvictionSpill : public OnDisk {
 protected:
  Budget room_for(std::size_t tensors) const {
    return Budget("tight", tensors * kBytes, {.evict = true, .spill = directory()});
  }
};

TEST_F(EvictionSpill, StoresWhatCannotBeComputedAgain) {
  const MemoryInfo before = memory();
  {
    const Budget budget = room_for(5);
    const BudgetScope use(budget);
    const Tensor x = from_vector(numbers(0));
    std::vector<Tensor> results;
    {
      const AsGradients gradients;
      for (int i = 0; i < 12; ++i) results.push_back(x + static_cast<float>(i));
    }
    const MemoryInfo now = memory();
    EXPECT_EQ(now.num_tensors - before.num_tensors, 13u);
    EXPECT_EQ(now.num_bytes + now.spilled_bytes - before.num_bytes, 13 * kBytes);
    EXPECT_GE(now.spilled_bytes, 8 * kBytes);
    EXPECT_EQ(now.dropped_bytes, 0u);
    EXPECT_THAT(who_holds(results[0]).to_string(), HasSubstr("spilled"));
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 12; ++i)
        EXPECT_EQ(values(results[static_cast<std::size_t>(i)] * 1.f), numbers(static_cast<float>(i)));
    EXPECT_LE(budget.peak(), budget.limit());
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().spilled_bytes, 0u);
  EXPECT_TRUE(folder_.is_empty());
}

// Products of large matrices take longer than storing what they give.
TEST_F(EvictionSpill, StoresWhatIsDearToCompute) {
  const Budget budget("tight", 6_MiB, {.evict = true, .spill = folder_.path().string()});
  std::vector<std::vector<float>> expected;
  const Tensor w = random_normal({512, 512}, {.seed = 1}) * 0.05f;
  Tensor h = w;
  for (int i = 0; i < 8; ++i) {
    h = matmul(h, w);
    expected.push_back(values(h));
  }
  const BudgetScope use(budget);
  std::vector<Tensor> layers = {w};
  std::size_t spilled = 0;
  for (int i = 0; i < 8; ++i) {
    layers.push_back(matmul(layers.back(), w));
    spilled = std::max(spilled, memory().spilled_bytes);
  }
  EXPECT_GT(spilled, 0u);
  for (std::size_t i = 8; i-- > 0;)
    EXPECT_EQ(values(layers[i + 1] * 1.f), values(from_vector(expected[i], {512, 512}) * 1.f));
  EXPECT_LE(budget.peak(), budget.limit());
}

TEST_F(EvictionSpill, WhatIsWrittenOrDisposedOfLeavesTheFile) {
  const MemoryInfo before = memory();
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = from_vector(numbers(0));
  std::vector<Tensor> results;
  {
    const AsGradients gradients;
    for (int i = 0; i < 8; ++i) results.push_back(x + static_cast<float>(i));
  }
  ASSERT_GT(memory().spilled_bytes, 0u);
  Variable v(results[0]);  // Its bytes stay from now on.
  v.assign_add(x);
  EXPECT_EQ(values(v.value())[1], 2.f);
  for (Tensor& result : results) result.dispose();
  EXPECT_EQ(memory().spilled_bytes, 0u);
  EXPECT_EQ(memory().num_data_buffers - before.num_data_buffers, 2u);
}

TEST_F(EvictionSpill, SpilledTensorsOutliveTheirBudget) {
  std::vector<Tensor> results;
  {
    const Budget budget = room_for(4);
    const BudgetScope use(budget);
    const Tensor x = from_vector(numbers(0));
    const AsGradients gradients;
    for (int i = 0; i < 8; ++i) results.push_back(x + static_cast<float>(i));
  }
  EXPECT_GT(memory().spilled_bytes, 0u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(values(results[static_cast<std::size_t>(i)]), numbers(static_cast<float>(i)));
  EXPECT_EQ(memory().spilled_bytes, 0u);
}

TEST_F(EvictionSpill, ThreadsShareTheFile) {
  const Budget budget("tight", 12 * kBytes, {.evict = true, .spill = folder_.path().string()});
  const Tensor x = from_vector(numbers(0));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const BudgetScope use(budget);
      std::vector<Tensor> results;
      {
        const AsGradients gradients;
        for (int i = 0; i < 8; ++i) results.push_back(x + static_cast<float>(i + t));
      }
      for (int i = 0; i < 8; ++i)
        if (values(results[static_cast<std::size_t>(i)] * 1.f) != numbers(static_cast<float>(i + t))) ++wrong;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(memory().spilled_bytes, 0u);
}

TEST_F(EvictionSpill, AFullDiskKeepsTensorsInMemoryAndIsNamed) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = from_vector(numbers(0));
  std::vector<Tensor> results;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4096, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    const AsGradients gradients;
    for (int i = 0; i < 8; ++i) results.push_back(x + static_cast<float>(i));
  } catch (const OutOfMemory& error) {
    said = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_THAT(said, HasSubstr("storing failed"));
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(values(results[i]), numbers(static_cast<float>(i)));
}

TEST_F(EvictionSpill, WrongDirectoriesAreRefused) {
  EXPECT_THROW(Budget("b", 1_MiB, {.evict = true, .spill = "not/there"}), NotFound);
  EXPECT_THROW(Budget("b", 1_MiB, {.spill = folder_.path().string()}), InvalidArgument);
  if (std::filesystem::exists("/dev/shm")) {
    EXPECT_THROW(Budget("b", 1_MiB, {.evict = true, .spill = "/dev/shm"}), InvalidArgument);
  }
  const Budget outer("outer", 2_MiB, {.evict = true});
  EXPECT_THROW(Budget("b", 1_MiB, outer, {.evict = true, .spill = folder_.path().string()}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
