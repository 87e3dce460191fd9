#include "plimsoll/ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/internal/pooling_ops.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

Tensor numbers(const Shape& shape) { return arange(0, static_cast<int>(shape.size())).cast(f32).reshape(shape); }

TEST(Pool2d, StepsByItsWindowUnlessTold) {
  const Tensor x = numbers({1, 4, 5, 1});
  EXPECT_EQ(max_pool2d(x, {2, 2}).to_vector<float>(), (std::vector<float>{6, 8, 16, 18}));  // A rest is left out.
  EXPECT_EQ(avg_pool2d(x, {2, 2}).to_vector<float>(), (std::vector<float>{3, 5, 13, 15}));
  EXPECT_EQ(max_pool2d(x, 2, {.strides = {2, 3}}).to_vector<float>(), (std::vector<float>{6, 9, 16, 19}));
  EXPECT_EQ(max_pool2d(x, {1, 2}, {.strides = 4}).shape(), (Shape{1, 1, 1, 1}));
}

TEST(Pool2d, LeavesPaddingOut) {
  const Tensor x = numbers({1, 3, 3, 1}) - 10.f;
  EXPECT_EQ(max_pool2d(x, 2, {.padding = "same"}).to_vector<float>(), (std::vector<float>{-6, -5, -3, -2}));
  EXPECT_EQ(avg_pool2d(x, 2, {.padding = "same"}).to_vector<float>(), (std::vector<float>{-8, -6.5, -3.5, -2}));
}

TEST(Pool1d, IsThatOfOneRow) {
  const Tensor x = numbers({2, 5, 1});
  EXPECT_EQ(max_pool1d(x, 2).to_vector<float>(), (std::vector<float>{1, 3, 6, 8}));
  EXPECT_EQ(avg_pool1d(x, 3, {.strides = 2, .padding = "same"}).to_vector<float>(),
            (std::vector<float>{0.5, 2, 3.5, 5.5, 7, 8.5}));
}

TEST(GlobalPool, IsOverAllPlaces) {
  const Tensor x = numbers({2, 2, 2, 2});
  EXPECT_EQ(global_avg_pool(x).to_vector<float>(), (std::vector<float>{3, 4, 11, 12}));
  EXPECT_EQ(global_max_pool(x).to_vector<float>(), (std::vector<float>{6, 7, 14, 15}));
  EXPECT_EQ(global_max_pool(x, {.keep_dims = true}).shape(), (Shape{2, 1, 1, 2}));
  EXPECT_EQ(global_avg_pool(numbers({2, 5, 3})).shape(), (Shape{2, 3}));
}

TEST(MaxPool, GivesNaNWhereThereIsOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = constant({1.f, nan, 2.f, 3.f}).reshape({1, 2, 2, 1});
  EXPECT_TRUE(std::isnan(max_pool2d(x, 2).item<float>()));
}

TEST(Pooling, TakesEmptyBatchesAndHalves) {
  EXPECT_EQ(max_pool2d(zeros({0, 4, 4, 2}), 2).shape(), (Shape{0, 2, 2, 2}));
  EXPECT_EQ(avg_pool2d(zeros({0, 4, 4, 2}), 2).shape(), (Shape{0, 2, 2, 2}));
  const Tensor half = numbers({1, 2, 2, 1}).cast(bf16);
  EXPECT_EQ(max_pool2d(half, 2).item<float>(), 3.f);
  EXPECT_EQ(avg_pool2d(half, 2).item<float>(), 1.5f);
  EXPECT_EQ(max_pool2d(half, 2).dtype(), bf16);
}

TEST(Pooling, InfersUnknownSizes) {
  const MaxPool op({"max_pool2d", 2, 2, 2, PaddingRule::valid}, true);
  const Shape x = {kUnknownSize, 8, kUnknownSize, 3};
  const SpecRef spec[] = {{&x, f32}};
  SpecList out;
  op.infer(Specs(spec), out);
  EXPECT_EQ(out[0].shape, (Shape{kUnknownSize, 4, kUnknownSize, 3}));
  EXPECT_EQ(out[1].shape, (Shape{kUnknownSize}));
}

TEST(Pooling, RefusesWhatItCannotDo) {
  const Tensor x = zeros({1, 4, 4, 3});
  EXPECT_EQ(refusal([&] {
              max_pool2d(x, {5, 2});
            }),
            "max_pool2d: the window [5, 2] is larger than x [1, 4, 4, 3]; use padding \"same\" or a larger x");
  EXPECT_EQ(refusal([&] { avg_pool2d(x, {0, 2}); }), "avg_pool2d: the sizes of the window are 0 and 2; give 1 or more");
  EXPECT_EQ(refusal([&] { max_pool2d(x, 2, {.strides = {1, 0}}); }), "max_pool2d: strides are 1 and 0; give 1 or more");
  EXPECT_EQ(refusal([&] { max_pool1d(x, 2); }), "max_pool1d: x is [1, 4, 4, 3]; give [batch, steps, channels]");
  EXPECT_EQ(refusal([&] {
              avg_pool2d(zeros({4, 4}), 2);
            }),
            "avg_pool2d: x is [4, 4]; give [batch, rows, columns, channels]");
  EXPECT_EQ(refusal([&] { max_pool2d(x, 2, {.padding = "full"}); }),
            "max_pool2d: padding is \"full\"; give \"valid\" or \"same\"");
  EXPECT_EQ(refusal([&] {
              global_avg_pool(zeros({4, 4}));
            }),
            "global_avg_pool: x is [4, 4]; give at least three axes: batch, places, channels");
  EXPECT_NE(refusal([&] { max_pool2d(x.cast(i32), 2); }).find("int32"), std::string::npos);
  EXPECT_THROW(global_max_pool(Tensor()), Error);
}

}  // namespace
}  // namespace plimsoll
