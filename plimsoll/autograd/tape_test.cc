#include "plimsoll/autograd/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

TEST(GradientTape, GivesTheGradientOfAChain) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (square(x) * 2.f + x).sum();
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{5, 9, 13}));
}

TEST(GradientTape, CountsItsNodesAsOverheadUntilItsMemoryGoes) {
  const Tensor x = constant(1.f);
  constexpr std::size_t kNodes = 100'000;  // More than a thread keeps for its next tape.
  const auto overhead_after = [&] {
    GradientTape tape;
    tape.watch(x);
    tidy([&] {
      Tensor y = x;
      for (std::size_t i = 0; i < kNodes; ++i) y = y + x;
    });
    return memory_overhead();
  };
  const std::size_t before = memory_overhead();
  EXPECT_GE(overhead_after(), before + kNodes * 3 * 40);
  EXPECT_LE(memory_overhead(), before + kNodes * 20) << "records that threads keep for tensors may be left";
}

TEST(GradientTape, WatchesTrainableVariables) {
  const Variable w(constant({2.f})), fixed(constant({5.f}), {.trainable = false});
  GradientTape tape;
  const Tensor y = w * w * fixed;
  const auto gradients = tape.gradient(y, {w, fixed});
  EXPECT_EQ(gradients[0].item<float>(), 20);
  EXPECT_EQ(gradients[1].size(), 0u);
}

TEST(GradientTape, RefusesOtherThreads) {
  const Tensor x = constant(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  std::thread([&] {
    EXPECT_THROW(tape.watch(x), FailedPrecondition);
    EXPECT_THROW(tape.gradient(y, x), FailedPrecondition);
    EXPECT_THROW(tape.reset(), FailedPrecondition);
  }).join();
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 6);
}

TEST(GradientTape, DoesNotSeeItsOwnGradients) {
  const Tensor x = constant(3.f);
  GradientTape outer, tape({.persistent = true});
  outer.watch(x);
  tape.watch(x);
  const Tensor y = x * x * x, slope = tape.gradient(y, x);
  EXPECT_TRUE(tape.gradient(slope, x).is_empty_handle());
  EXPECT_EQ(outer.gradient(slope, x).item<float>(), 18);
}

TEST(GradientTape, RefusesASecondQuestionUnlessPersistent) {
  const Tensor x = constant(3.f);
  GradientTape once;
  once.watch(x);
  const Tensor y = x * x;
  once.gradient(y, x);
  EXPECT_THROW(once.gradient(y, x), FailedPrecondition);

  GradientTape persistent({.persistent = true});
  persistent.watch(x);
  const Tensor z = x * x * x;
  EXPECT_EQ(persistent.gradient(z, x).item<float>(), 27);
  EXPECT_EQ(persistent.gradient(z, x).item<float>(), 27);
}

TEST(GradientTape, NestsForSecondDerivatives) {
  const Tensor x = constant(2.0);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y = x * x * x + tanh(x);
    first = inner.gradient(y, x);
  }
  const double t = std::tanh(2.0);
  EXPECT_NEAR(first.item<double>(), 12 + 1 - t * t, 1e-12);
  EXPECT_NEAR(outer.gradient(first, x).item<double>(), 12 - 2 * t * (1 - t * t), 1e-12);
}

TEST(GradientTape, HoldsBuffersNotTensors) {
  const Tensor x = ones({100});
  const MemoryInfo before = memory();
  {
    GradientTape tape;
    tape.watch(x);
    Tensor y = square(x);
    {
      const Tensor z = exp(y);
      EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
    }
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 1);
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 2);  // exp saved its output.
  }
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST(GradientTape, IsNotDisturbedByDisposedIntermediates) {
  const Tensor x = constant({1.f, 2.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = tidy([&] {
    const Tensor squared = square(x);
    const Tensor result = square(squared).sum();
    squared.dispose();
    return result;
  });
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (std::vector<float>{4, 32}));
}

TEST(GradientTape, LeavesNothingBehindWhenTheFunctionThrows) {
  const Tensor x = ones({4});
  const MemoryInfo before = memory();
  const auto df = grad([](const Tensor& t) -> Tensor {
    const Tensor s = square(t);
    throw std::logic_error("stop");
  });
  EXPECT_THROW(df(x), std::logic_error);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(ThreadContext::current().interceptor, nullptr);
}

TEST(GradientTape, GivesResultsThatCanBeDisposedOneByOne) {
  const Tensor x = constant(1.f), y = constant(2.f);
  const auto [value, gradients] = value_and_gradients([](const Tensor& a, const Tensor& b) { return a + b; }, {x, y});
  EXPECT_EQ(value.item<float>(), 3);
  gradients[0].dispose();
  EXPECT_EQ(gradients[1].item<float>(), 1);
}

TEST(GradientTape, SumsOverBroadcastAxes) {
  const Tensor x = ones({2, 3}), row = ones({3}), number = ones(Shape::scalar());
  GradientTape tape;
  tape.watch(row);
  tape.watch(number);
  const auto gradients = tape.gradient(x * row + number, {row, number});
  EXPECT_EQ(gradients[0].to_vector<float>(), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(gradients[1].item<float>(), 6);
}

TEST(GradientTape, RefusesWhatHasNoGradient) {
  GradientTape tape;
  EXPECT_THROW(tape.watch(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(tape.watch(Tensor()), InvalidArgument);
  const Tensor x = ones({2});
  x.dispose();
  EXPECT_THROW(tape.watch(x), Disposed);
  EXPECT_THROW(tape.gradient(constant(1), ones({1})), InvalidArgument);
}

TEST(GradientTape, LetsGoOfBuffersAsItGoes) {
  const Tensor x = ones({1000});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = exp(exp(exp(x * 0.1f))).sum();
  const std::size_t before = memory().num_bytes;
  const Tensor g = tape.gradient(y, x);
  EXPECT_EQ(memory().num_bytes, before - 3 * 4000 + 4000);
}

TEST(GradientTape, SeesNothingMoreOnceStoppedAndCanStillBeAsked) {
  const Tensor x = constant(3.f);
  GradientTape outer;
  outer.watch(x);
  auto tape = std::make_unique<GradientTape>();
  tape->watch(x);
  const Tensor y = x * x;
  tape->stop();
  tape->stop();
  const Tensor later = y * x;
  const Tensor slope = tape->gradient(y, x);
  EXPECT_EQ(slope.item<float>(), 6.f);
  EXPECT_EQ(outer.gradient(slope, x).item<float>(), 2.f);  // The one outside saw the other's gradient.
  std::thread([&] { tape.reset(); }).join();               // It is on no thread any more.
  EXPECT_EQ(later.item<float>(), 27.f);
}

TEST(GradientTape, DoesNotSeeWhatHappensWithoutTapes) {
  const Tensor x = constant(3.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  Tensor unseen;
  {
    const WithoutTapes without;
    unseen = x * x;
  }
  EXPECT_EQ(tape.gradient(unseen * x, x).item<float>(), 9.f);
  EXPECT_TRUE(tape.gradient(unseen, x).is_empty_handle());
}

TEST(GradientTape, IsStoppedOnItsOwnThreadOnly) {
  GradientTape tape;
  std::thread([&] { EXPECT_THROW(tape.stop(), FailedPrecondition); }).join();
  tape.stop();
}

}  // namespace
}  // namespace plimsoll
