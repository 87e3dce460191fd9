// Recipes of budgets that evict: what writes, frees, other budgets, other threads and forks do to them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/evict/eviction_testing.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kSize = 16384;
constexpr std::size_t kBytes = kSize * sizeof(float);

const Budget at_namespace_scope("early", 3 * kBytes, {.evict = true});

Budget room_for(std::size_t tensors, const char* name = "tight") {
  return Budget(name, tensors * kBytes, {.evict = true});
}

Tensor all(float value) { return from_vector(std::vector<float>(kSize, value)); }
float first(const Tensor& x) { return x.at<float>({0}); }

void fill_room(std::int64_t tensors) { zeros({tensors * kSize}).data<float>(); }

TEST(EvictionRecipes, ABudgetAtNamespaceScopeEvicts) {
  const BudgetScope use(at_namespace_scope);
  const Tensor x = all(1);
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back(x + static_cast<float>(i));
  EXPECT_TRUE(is_dropped(results[0]));
}

TEST(EvictionRecipes, AnInputIsNotOverwrittenOutsideOfTheScopeWhileADroppedResultNeedsIt) {
  const Budget budget = room_for(3);
  Tensor x = all(1), other = all(1), y;
  {
    const BudgetScope use(budget);
    y = x * 2.f + other * 0.f;
    ASSERT_TRUE(drop(y));
  }
  x = std::move(x) + 100.f;                 // The kernel for equal shapes.
  other = std::move(other) * all(3).sum();  // The general path.
  EXPECT_EQ(first(x), 101.f);
  EXPECT_EQ(first(y), 2.f);
}

TEST(EvictionRecipes, AResultOverwrittenUnderAnotherBudgetBelongsToNeither) {
  const Budget a = room_for(5, "a"), b = room_for(5, "b");
  const Tensor x = all(1);
  Tensor made, taken, last;
  {
    const BudgetScope use(a);
    made = x + 1.f;
    taken = made * 2.f;
  }
  {
    const BudgetScope use(b);
    taken = std::move(taken) + 1.f;
    last = taken * 3.f;
    taken = Tensor();
    drop(last);
  }
  drop(made);
  EXPECT_EQ(first(last), 15.f);
  made = Tensor();
  const BudgetScope use(a);
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(x + static_cast<float>(i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(first(others[static_cast<std::size_t>(i)]), 1.f + static_cast<float>(i));
}

// Copies its operand. From its second run on it waits, having said so, before it reads.
struct Gate {
  std::atomic<int> runs{0};
  std::atomic<bool> is_waiting{false}, may_go{false};
  void open() { may_go = true; }
};
class Slow final : public OpOf<Slow> {
 public:
  explicit Slow(Gate* gate) : gate_(gate) {}
  const char* name() const noexcept override { return "slow"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override {
    if (++gate_->runs > 1) {
      gate_->is_waiting = true;
      while (!gate_->may_go) std::this_thread::yield();
    }
    std::copy_n(run.in[0].data<float>(), run.in[0].size(), run.out[0].data<float>());
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }

 private:
  Gate* gate_;
};

TEST(EvictionRecipes, AnOperandThatAnotherThreadsRecomputationReadsIsNotOverwritten) {
  const Budget budget = room_for(8);
  const BudgetScope use(budget);
  const Tensor x = all(1);
  Tensor t = x + 1.f;
  Gate gate;
  const Tensor copy = execute(Slow(&gate), t);
  ASSERT_TRUE(drop(copy));
  float seen = 0;
  std::thread reader([&] { seen = first(copy); });
  while (!gate.is_waiting) std::this_thread::yield();
  t = std::move(t) + 1000.f;
  gate.open();
  reader.join();
  EXPECT_EQ(seen, 2.f);
  EXPECT_EQ(first(t), 1002.f);
}

TEST(EvictionRecipes, AResultThatIsWrittenThroughAViewIsNotComputedAgain) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = all(1), y = x + 1.f, z = y + 1.f;
  ASSERT_TRUE(drop(z));
  HostWrite(y, HostWrite::Elements::kKept).data<float>()[0] = 7.f;
  EXPECT_FALSE(drop(y));
  EXPECT_EQ(first(y), 7.f);
  EXPECT_EQ(first(z), 3.f);
}

TEST(EvictionRecipes, AFreedOperandWithoutElementsNeedsNoBytes) {
  const Budget budget = room_for(4);
  const BudgetScope use(budget);
  const Tensor x = all(5), empty = zeros({0});
  Tensor y;
  {
    const Tensor none = empty * 2.f;
    y = concat({none, x}, 0);
  }
  ASSERT_TRUE(drop(y));
  EXPECT_EQ(first(y), 5.f);
}

// Each step drops what the one before made, and frees what that was made of.
TEST(EvictionRecipes, AChainOfFreedResultsBetweenDroppedOnesDoesNotGrow) {
  const Budget budget = room_for(5);
  const BudgetScope use(budget);
  const Tensor start = all(0);
  Tensor x = start + 0.f;
  const auto step = [&] {
    const Tensor next = x + 1.f;
    drop(next);
    fill_room(3);
    x = next;
  };
  for (int i = 0; i < 200; ++i) step();
  const std::size_t before = memory_overhead();
  for (int i = 0; i < 2000; ++i) step();
  EXPECT_LE(memory_overhead(), before + 64_KiB);
  EXPECT_EQ(first(x), 2200.f);
  EXPECT_LE(budget.peak(), budget.limit());
}

TEST(EvictionRecipes, OverwrittenResultsThatDoubleTheirDepthAreCountedRight) {
  const Budget budget("ample", 64_MiB, {.evict = true});
  const BudgetScope use(budget);
  Tensor x = all(1);
  for (int i = 0; i < 200; ++i) x = (x + x) * 0.5f;
  const std::size_t before = memory_overhead();
  for (int i = 0; i < 2000; ++i) x = (x + x) * 0.5f;
  EXPECT_LE(memory_overhead(), before + 64_KiB);
  EXPECT_EQ(first(x), 1.f);
}

TEST(EvictionRecipes, AnInputThatNobodyHoldsEndsWhenWhatNeedsItIsBack) {
  const std::size_t before = memory().num_bytes;
  const Budget process("process", 4 * kBytes), budget("tight", 3 * kBytes, process, {.evict = true});
  Tensor y, z;
  const BudgetScope charge(process);
  {
    Tensor x = all(3);
    const BudgetScope use(budget);
    y = x * 2.f;
    z = x + 1.f;
    ASSERT_TRUE(drop(y) && drop(z));
  }
  EXPECT_EQ(memory().num_bytes - before, kBytes);  // The input.
  EXPECT_EQ(first(y), 6.f);
  EXPECT_EQ(memory().num_bytes - before, 2 * kBytes);
  EXPECT_EQ(first(z), 4.f);
  EXPECT_EQ(memory().num_bytes - before, 2 * kBytes);
  EXPECT_EQ(memory().num_data_buffers, memory().num_tensors);
  fill_room(2);  // A budget that does not evict has the room, too.
}

TEST(EvictionRecipes, OfABudgetThatIsGoneEndWithTheLastTensorThatComesBack) {
  Tensor x = all(3), y;
  {
    const Budget budget = room_for(3);
    const BudgetScope use(budget);
    y = x * 2.f;
    ASSERT_TRUE(drop(y));
  }
  x = Tensor();
  EXPECT_EQ(first(y), 6.f);
  EXPECT_FALSE(drop(y));
}

TEST(EvictionRecipes, ASmallBudgetInsideOfALargeOneDropsSmallTensors) {
  const Budget outer("outer", 1000'000'000, {.evict = true}), inner("inner", 4 * kBytes, outer, {.evict = true});
  const BudgetScope use(inner);
  const Tensor x = all(1);
  std::vector<Tensor> results;
  for (int i = 0; i < 10; ++i) results.push_back(x + static_cast<float>(i));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(first(results[static_cast<std::size_t>(i)]), 1.f + static_cast<float>(i));
}

TEST(EvictionRecipes, AChildOfForkRefusesWhatAnotherThreadWasRecomputing) {
  const Budget budget = room_for(8);
  const BudgetScope use(budget);
  const Tensor x = all(1), z = x + 1.f;
  Gate gate;
  const Tensor copy = execute(Slow(&gate), x);
  ASSERT_TRUE(drop(copy) && drop(z));
  std::thread reader([&] { EXPECT_EQ(first(copy), 1.f); });
  while (!gate.is_waiting) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    try {
      first(z);
    } catch (const FailedPrecondition& error) {
      _exit(std::string(error.what()).find("child of fork()") != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  gate.open();
  reader.join();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(first(z), 2.f);
}

TEST(EvictionRecipes, AChildOfForkRecomputesWhenNoOtherThreadDid) {
  const Budget budget = room_for(8);
  const BudgetScope use(budget);
  const Tensor x = all(1), z = x + 1.f;
  ASSERT_TRUE(drop(z));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(first(z) == 2.f ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(EvictionRecipes, ConvolutionsTakeScratchForAFewThreadsOnly) {
  const Tensor x = random_normal({16, 32, 32, 32}, {.seed = 1}), filter = random_normal({3, 3, 32, 32}, {.seed = 2});
  const auto run = [&](bool evict, std::vector<float>& values) {
    Budget budget("convolve", 64_MiB, {.evict = evict});
    const BudgetScope use(budget);
    values = conv2d(x, filter, {.padding = "same"}).to_vector<float>();
    return budget.peak();
  };
  const int before = num_threads();
  set_num_threads(2);
  std::vector<float> natural, lean;
  const std::size_t peak = run(false, natural);
  EXPECT_LT(run(true, lean), peak - 512 * 1024);
  EXPECT_EQ(lean, natural);
  set_num_threads(before);
}

}  // namespace
}  // namespace plimsoll
