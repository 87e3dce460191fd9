#include "plimsoll/base/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

static_assert(std::is_convertible_v<TensorView, ConstTensorView> &&
              !std::is_convertible_v<ConstTensorView, TensorView>);
static_assert(std::is_nothrow_copy_constructible_v<TensorView> && sizeof(TensorView) <= 128);

class TensorViewTest : public testing::Test {
 protected:
  TensorViewTest() { std::iota(values_.begin(), values_.end(), 0.f); }
  std::vector<float> values_ = std::vector<float>(12);
};

TEST_F(TensorViewTest, ReachesElementsThroughBaseAndOffset) {
  const TensorView view(values_.data(), 4 * sizeof(float), f32, {2, 3});
  EXPECT_EQ(view.size(), 6u);
  EXPECT_EQ(view.nbytes(), 24u);
  EXPECT_EQ(view.rank(), 2u);
  EXPECT_EQ(view.span<float>()[0], 4.f);
  view.span<float>()[5] = -1.f;
  EXPECT_EQ(values_[9], -1.f);
}

TEST_F(TensorViewTest, ReadsThroughAConstView) {
  const TensorView writable(values_.data(), 0, f32, {12});
  const ConstTensorView view = writable;
  static_assert(std::is_same_v<decltype(view.data<float>()), const float*>);
  EXPECT_EQ(view.data<float>(), values_.data());
  EXPECT_EQ(view.shape(), (Shape{12}));
}

TEST_F(TensorViewTest, RefusesAnotherElementType) {
  const TensorView view(values_.data(), 0, f32, {12});
  EXPECT_THROW(view.data<int>(), InvalidArgument);
  EXPECT_THROW(view.span<double>(), InvalidArgument);
}

TEST_F(TensorViewTest, ReshapesTheSameElements) {
  const TensorView view(values_.data(), 8, f32, {2, 3});
  EXPECT_EQ(view.reshaped({6}).data<float>(), view.data<float>());
  EXPECT_THROW(view.reshaped({5}), InvalidArgument);
}

TEST_F(TensorViewTest, CutsRows) {
  const ConstTensorView view(values_.data(), 0, f32, {4, 3});
  EXPECT_EQ(view.rows(1, 3).shape(), (Shape{2, 3}));
  EXPECT_EQ(view.rows(1, 3).span<float>()[0], 3.f);
  EXPECT_EQ(view.rows(4, 4).size(), 0u);
  EXPECT_THROW(view.rows(3, 5), InvalidArgument);
  EXPECT_THROW(view.rows(-1, 2), InvalidArgument);
  EXPECT_THROW(view.rows(3, 2), InvalidArgument);
  EXPECT_THROW(ConstTensorView(values_.data(), 0, f32, Shape::scalar()).rows(0, 0), InvalidArgument);
  EXPECT_EQ(ConstTensorView(values_.data(), 0, f32, {0, 3}).rows(0, 0).size(), 0u);
}

}  // namespace
}  // namespace plimsoll
