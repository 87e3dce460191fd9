#include "plimsoll/ops/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/refusal_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

TEST(Elementwise, BroadcastsAsNumPyDoes) {
  const Tensor column = constant({{1.f}, {2.f}}), row = constant({10.f, 20.f, 30.f});
  const Tensor sum = column + row;
  EXPECT_EQ(sum.shape(), Shape({2, 3}));
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ((zeros({0, 3}) + row).shape(), Shape({0, 3}));
  EXPECT_EQ((zeros({1, 0}) + zeros({4, 1})).shape(), Shape({4, 0}));
}

TEST(Elementwise, LetsNumbersTakeTheTensorsDtype) {
  EXPECT_EQ((ones({2}, f16) * 2).dtype(), f16);
  EXPECT_EQ((ones({2}, i64) + 3).to_vector<std::int64_t>(), (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ((7 - ones({1}, i32)).item<int>(), 6);
  EXPECT_EQ((constant({5, -5}) / 2).to_vector<int>(), (std::vector<int>{2, -3}));
  EXPECT_EQ((constant({5, -5}) % 3).to_vector<int>(), (std::vector<int>{2, 1}));
  EXPECT_EQ((constant({5, -5}) / 0).to_vector<int>(), (std::vector<int>{0, 0}));
  EXPECT_EQ((constant({std::int64_t{1} << 60}) + 1).item<std::int64_t>(), (std::int64_t{1} << 60) + 1);
}

TEST(Elementwise, ComparesAndCombines) {
  const Tensor x = constant({1.f, 2.f, 3.f});
  EXPECT_EQ((x > 1.f && x < 3.f).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ((!(x == 2.f)).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ((x != 2.f || x >= 2.f).to_vector<bool>(), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(where(x <= 2.f, x, -x).to_vector<float>(), (std::vector<float>{1, 2, -3}));
  EXPECT_EQ(where(x <= 2.f, x, 0).to_vector<float>(), (std::vector<float>{1, 2, 0}));
  EXPECT_EQ(where(x <= 2.f, 0.5, x).to_vector<float>(), (std::vector<float>{0.5f, 0.5f, 3}));
}

TEST(Elementwise, CarriesNaNAndInfinities) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor x = constant({inf, -inf, nan, 0.f});
  EXPECT_EQ(is_nan(x - x).to_vector<bool>(), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(is_inf(x * 2).to_vector<bool>(), (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(tanh(x).at<float>({0}), 1);
  EXPECT_TRUE(std::isnan(maximum(x, 1.f).at<float>({2})));
  EXPECT_EQ(exp(x).at<float>({1}), 0);
}

TEST(Elementwise, LeakyReluTakesItsSlopeInTheTensorsPrecision) {
  EXPECT_EQ(leaky_relu(constant({-1.0})).item<double>(), -0.2);
  EXPECT_EQ(leaky_relu(constant({-1.f})).item<float>(), -0.2f);
}

TEST(Elementwise, GeluIsExactOrByTanh) {
  EXPECT_NEAR(gelu(constant({1.0})).item<double>(), 0.84134474606854, 1e-14);
  EXPECT_NEAR(gelu(constant({1.0}), true).item<double>(), 0.84119199060827, 1e-14);
  EXPECT_NEAR(gelu(constant({-5.76})).item<double>() / -2.4224813594046887e-8, 1, 1e-12);
}

TEST(Elementwise, ClipKeepsNaNAndRefusesBoundsThatTheDtypeHasNot) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Tensor y = clip(constant({-inf, -1.f, 0.5f, inf, nan}), 0, 1);
  EXPECT_THAT(y.slice({0}, {4}).to_vector<float>(), testing::ElementsAre(0, 0, 0.5f, 1));
  EXPECT_TRUE(std::isnan(y.at<float>({4})));
  EXPECT_THAT(clip(constant({-5, 5, 2}), -1, 3).to_vector<int>(), testing::ElementsAre(-1, 3, 2));
  EXPECT_EQ(clip(ones({2}, f16), 0, 0.5).dtype(), f16);
  EXPECT_THROW(clip(constant({1, 2}), 0.5, 3), InvalidArgument);
  EXPECT_THROW(clip(constant({1.f}), 2, 1), InvalidArgument);
  EXPECT_THROW(clip(constant({1.f}), nan, 1), InvalidArgument);
  EXPECT_THROW(clip(constant({true}), 0, 1), InvalidArgument);
}

TEST(Elementwise, ComputesHalvesInFloatsAndRoundsOnce) {
  const Tensor x = constant({1.f, 2.f, 3.f}).cast(bf16);
  EXPECT_EQ((x / 3).cast(f32).at<float>({0}), static_cast<float>(bfloat16(1.f / 3)));
  EXPECT_EQ(sqrt(x.cast(f16)).cast(f32).at<float>({1}), static_cast<float>(float16(std::sqrt(2.f))));
}

TEST(Elementwise, NamesTheOperationAndBothOperandsWhenItRefuses) {
  const Tensor x = ones({2, 3}), y = ones({4});
  EXPECT_EQ(refusal<Error>([&] { x + y; }),
            "add: shapes [2, 3] and [4] do not fit: 3 against 4 on axis 1; sizes must be equal or 1");
  EXPECT_EQ(refusal<Error>([&] {
              x* ones({2, 3}, f64);
            }),
            "multiply: x [2, 3] is float32, y [2, 3] is float64; cast one with .cast()");
  EXPECT_EQ(refusal<Error>([&] {
              log(constant({1, 2}));
            }),
            "log: is not defined for int32; cast the operand to another dtype first");
  EXPECT_THROW(where(x, x, x), InvalidArgument);
  EXPECT_EQ(refusal<Error>([&] { where(constant({true}), constant({1}), 0.5); }),
            "where: 0.5 is not a value of int32; cast the operand first, or give a number that is");
  EXPECT_THROW(where(constant({true}), 1, Tensor()), InvalidArgument);
  EXPECT_THROW(broadcast_to(x, {2, 4}), InvalidArgument);
  EXPECT_THROW(constant({true}) + constant({true}), InvalidArgument);
}

TEST(Elementwise, NamesTheOperandThatIsDisposed) {
  const Tensor x = ones({2}), y = ones({2});
  y.dispose();
  EXPECT_THAT(refusal<Error>([&] { x + y; }),
              testing::StartsWith("add: y is disposed: tensor of shape [2], made by ones"));
  EXPECT_THROW(y + 1, Disposed);
  EXPECT_THROW(1 - y, Disposed);
  EXPECT_THROW(tanh(y), Disposed);
  EXPECT_THROW(where(y > 0, x, x), Disposed);
  EXPECT_THROW(y.sum(), Disposed);
  EXPECT_THROW(y.reshape({1, 2}), Disposed);
  EXPECT_THROW(y.item<float>(), Disposed);
  EXPECT_THROW(x + Tensor(), InvalidArgument);
}

TEST(Elementwise, MakesOneTensorAndNothingElse) {
  const Tensor x = ones({100});
  const MemoryInfo before = memory();
  const Tensor y = (x + 1) * x;
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 1);
  EXPECT_EQ(memory().num_bytes, before.num_bytes + 400);
}

}  // namespace
}  // namespace plimsoll
