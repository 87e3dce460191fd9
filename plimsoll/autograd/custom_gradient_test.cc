#include "plimsoll/autograd/custom_gradient.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

Tensor cube_with_wrong_slope(const Tensor& x) {
  return custom_gradient(
      {x}, [](const std::vector<Tensor>& in) { return in[0] * in[0] * in[0]; },
      [](const Tensor& dy, const std::vector<Tensor>& in) { return std::vector{dy * in[0] * 100.f}; });
}

TEST(CustomGradient, IsUsedInsteadOfThatOfTheOperations) {
  const Tensor x = constant({2.f});
  EXPECT_EQ(cube_with_wrong_slope(x).item<float>(), 8);
  EXPECT_EQ(grad(cube_with_wrong_slope)(x).item<float>(), 200);
}

TEST(CustomGradient, CanBeDifferentiatedAgain) {
  const auto second = grad([](const Tensor& x) { return grad(cube_with_wrong_slope)(x); });
  EXPECT_EQ(second(constant({2.f})).item<float>(), 100);
}

TEST(CustomGradient, RefusesGradientsThatDoNotFit) {
  const auto with = [](const CustomBackward& backward) {
    return grad([=](const Tensor& x) {
      return custom_gradient(
          {x}, [](const std::vector<Tensor>& in) { return in[0] + 1.f; }, backward);
    });
  };
  const Tensor x = ones({3});
  const MemoryInfo before = memory();
  EXPECT_THROW(with([](const Tensor&, const std::vector<Tensor>&) { return std::vector<Tensor>(); })(x),
               InvalidArgument);
  EXPECT_THROW(with([](const Tensor&, const std::vector<Tensor>&) { return std::vector{ones({2})}; })(x),
               InvalidArgument);
  EXPECT_THROW(with([](const Tensor&, const std::vector<Tensor>&) { return std::vector{ones({3}, f64)}; })(x),
               InvalidArgument);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(CustomGradient, LeavesNothingWhenAFunctionThrows) {
  const Tensor x = ones({3});
  const MemoryInfo before = memory();
  const auto throwing = [](const std::vector<Tensor>&) -> Tensor { throw std::logic_error("stop"); };
  EXPECT_THROW(grad([&](const Tensor& t) {
                 return custom_gradient({t}, throwing,
                                        [](const Tensor& dy, const std::vector<Tensor>&) { return std::vector{dy}; });
               })(x),
               std::logic_error);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(StopGradient, GivesTheSameBytesWithoutGradient) {
  const Tensor x = constant({3.f});
  const std::size_t buffers = memory().num_data_buffers;
  EXPECT_EQ(grad([&](const Tensor& t) { return t * stop_gradient(t); })(x).item<float>(), 3);
  EXPECT_EQ(memory().num_data_buffers, buffers);
}

}  // namespace
}  // namespace plimsoll
