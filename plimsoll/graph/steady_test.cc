// What a call takes in the steady state, and what it leaves when it is refused.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/log.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

struct Mlp {
  Variable w1{random_normal({8, 16}, {.seed = 1}), {.name = "w1"}};
  Variable w2{random_normal({16, 1}, {.seed = 2}), {.name = "w2"}};

  Tensor step(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor loss = square(matmul(relu(matmul(x, w1)), w2) - y).mean();
    const std::vector<Tensor> gradients = tape.gradient(loss, std::vector<Variable>{w1, w2});
    w1.assign_sub(gradients[0] * 0.01f);
    w2.assign_sub(gradients[1] * 0.01f);
    return loss;
  }
};

TEST(Steady, ACallAllocatesNothingOnTheHeap) {
  const Mlp mlp;
  const auto f = function([&](Tensor x, Tensor y) { return mlp.step(x, y); });
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = zeros({4, 1});
  for (int i = 0; i < 3; ++i) f(x, y);
  const std::size_t before = heap_allocations();
  for (int i = 0; i < 100; ++i) f(x, y);
  EXPECT_EQ(heap_allocations(), before);
}

TEST(Steady, AStepTakesWhatThePlanSaysAndLessThanEager) {
  const Mlp eager, traced;
  const auto f = function([&](Tensor x, Tensor y) { return traced.step(x, y); });
  const Tensor x = random_normal({64, 8}, {.seed = 3}), y = zeros({64, 1});
  EXPECT_EQ(f(x, y).item<float>(), eager.step(x, y).item<float>());
  const auto of_function = profile([&] { return f(x, y); });
  const auto of_eager = profile([&] { return eager.step(x, y); });
  EXPECT_EQ(of_function.relative_peak_bytes, f.memory_plan(x, y).peak_bytes);
  EXPECT_LE(of_function.relative_peak_bytes, of_eager.relative_peak_bytes);
  EXPECT_EQ(traced.w1.value().to_vector<float>(), eager.w1.value().to_vector<float>());
}

TEST(Steady, ManyCallsLeaveEverythingAsItWas) {
  const Mlp mlp;
  const auto f = function([&](Tensor x, Tensor y) { return mlp.step(x, y); });
  const Tensor x = random_normal({4, 8}, {.seed = 3}), y = zeros({4, 1});
  f(x, y);
  const MemoryInfo before = memory();
  for (int i = 0; i < 20000; ++i) f(x, y);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST(Steady, ARefusedCallHasChangedNothing) {
  const Mlp mlp, twin;
  const auto f = function([&](Tensor x, Tensor y) { return mlp.step(x, y); });
  const Tensor x = random_normal({64, 8}, {.seed = 3}), y = zeros({64, 1});
  int refused = 0;
  for (std::size_t limit = 256; limit < 64 << 10; limit += 256) {
    const Budget budget("tight", limit);
    const auto w1 = mlp.w1.value().to_vector<float>();
    const MemoryInfo before = memory();
    bool done = true;
    try {
      const BudgetScope use(budget);
      f(x, y);
    } catch (const OutOfMemory&) {
      ++refused;
      done = false;
      EXPECT_EQ(mlp.w1.value().to_vector<float>(), w1);
    }
    EXPECT_EQ(memory().num_bytes, before.num_bytes);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
    if (done) break;
  }
  EXPECT_GT(refused, 3);
  twin.step(x, y);
  EXPECT_EQ(mlp.w1.value().to_vector<float>(), twin.w1.value().to_vector<float>());
}

TEST(Steady, CallsMayOverlap) {
  const Variable w(random_normal({16, 16}, {.seed = 1}), {.name = "w"});
  const auto body = [&](const Tensor& x) { return relu(matmul(relu(matmul(x, w)), w)) + x; };
  const auto f = function(body);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Tensor x = random_normal({4 + t % 2, 16}, {.seed = static_cast<std::uint64_t>(t)});
      const auto expected = body(x).to_vector<float>();
      for (int i = 0; i < 100; ++i) EXPECT_EQ(f(x).to_vector<float>(), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Steady, TracesAreBounded) {
  const auto f = function([](Tensor x) { return x * 2.f + x; }, {.name = "varied"});
  std::vector<std::string> logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged.emplace_back(text); });
  for (std::int64_t i = 1; i < 200; ++i) EXPECT_EQ(f(ones({i})).size(), static_cast<std::size_t>(i));
  set_log_sink(std::move(before));
  EXPECT_LE(f.cached_bytes(), std::size_t{64} << 20);
  EXPECT_EQ(f.trace_count(), 199u);
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_THAT(logged[0], testing::HasSubstr("varied"));
}

TEST(Steady, TracesManyNodesInTimeThatGrowsWithThem) {
  const Tensor x = zeros({4});
  const auto trace = [&](int nodes) {
    const Stopwatch watch;
    const auto f = function([&](Tensor v) {
      for (int i = 0; i < nodes; ++i) v = tanh(v);
      return v;
    });
    f(x);
    return static_cast<double>(watch.ns()) * 1e-9;
  };
  const double few = trace(1000), many = std::min({trace(10000), trace(10000), trace(10000)});
  EXPECT_LT(many, 40 * few + 0.1);
  RecordProperty("seconds_for_ten_thousand", std::to_string(many));
}

}  // namespace
}  // namespace plimsoll
