// Tasks, scopes and pools together with operations.
#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/device/device_memory.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/task_run.h"
#include "plimsoll/tensor/task_testing.h"
#include "plimsoll/tensor/tensor_pool.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/when_all.h"

namespace plimsoll {
namespace {

Task<Tensor> later(Tensor x, std::vector<Tensor>& escaped) {
  TidyScope scope;
  const Tensor lost = x * 3.f;
  escaped.push_back(lost);
  co_await yield();
  const Tensor result = lost + 1.f;  // Still alive after the suspension.
  co_return scope.keep(result);
}

Task<Tensor> both(Tensor x, std::vector<Tensor>& escaped) {
  TidyScope scope;
  const Tensor first = co_await later(x, escaped);
  const Tensor second = co_await later(first, escaped);
  co_return scope.keep(first + second);
}

TEST(Coroutines, KeepTheirTensorsAcrossSuspensions) {
  std::vector<Tensor> escaped;
  const Tensor x = ones({2});
  const std::size_t start = memory().num_tensors;
  {
    const Tensor y = run(both(x, escaped));
    EXPECT_EQ(y.at<float>({0}), 4.f + 13.f);
    EXPECT_EQ(memory().num_tensors, start + 1);
    EXPECT_TRUE(escaped[0].is_disposed());
    EXPECT_TRUE(escaped[1].is_disposed());
  }
  escaped.clear();
  EXPECT_EQ(memory().num_tensors, start);
}

TEST(Coroutines, TakeTurnsInOneComputation) {
  std::vector<Tensor> escaped;
  const Tensor x = ones({2});
  const std::size_t start = memory().num_tensors;
  auto outer = [&]() -> Task<Tensor> {
    TidyScope scope;
    std::vector<Task<Tensor>> tasks;
    for (int i = 0; i < 10; ++i) tasks.push_back(both(x * float(i), escaped));
    const std::vector<Tensor> results = co_await when_all(std::move(tasks));
    Tensor sum = results[0];
    for (int i = 1; i < 10; ++i) sum = sum + results[static_cast<std::size_t>(i)];
    co_return scope.keep(sum);
  };
  EXPECT_EQ(run(outer()).at<float>({1}), 12.f * 45 + 5 * 10);
  EXPECT_EQ(memory().num_tensors, start);
}

TEST(Coroutines, ComputeOnSeveralThreads) {
  TestThreads threads;
  const Tensor x = ones({2});
  const std::size_t start = memory().num_tensors;
  auto task = [&]() -> Task<Tensor> {
    TidyScope scope;
    Tensor sum = x;
    for (int i = 0; i < 50; ++i) {
      sum = sum + x;
      co_await threads.hop();
    }
    co_return scope.keep(sum * 2.f);
  };
  EXPECT_EQ(run(task()).at<float>({0}), 102.f);
  EXPECT_EQ(memory().num_tensors, start);
}

TEST(Coroutines, ShareAPoolByYielding) {
  TensorPool pool({.shape = {1, 4}, .dtype = f32, .capacity = 2});
  const std::size_t in_use = memory_stats("CPU:0").bytes_in_use, start = memory().num_tensors;
  auto task = [&](float value) -> Task<float> {
    std::optional<TensorPool::Lease> lease = pool.try_acquire();
    while (!lease) {
      co_await yield();
      lease = pool.try_acquire();
    }
    TidyScope scope;
    for (float& element : lease->data<float>()) element = value;
    co_await yield();
    co_return lease->tensor().sum().item<float>();
  };
  std::vector<Task<float>> tasks;
  for (int i = 0; i < 6; ++i) tasks.push_back(task(float(i)));
  EXPECT_EQ(run(when_all(std::move(tasks))), (std::vector<float>{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(pool.peak(), 2u);
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_EQ(memory_stats("CPU:0").bytes_in_use, in_use);
  EXPECT_EQ(memory().num_tensors, start);
}

}  // namespace
}  // namespace plimsoll
