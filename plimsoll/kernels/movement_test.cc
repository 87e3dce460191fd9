#include "plimsoll/kernels/movement.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

template <Element T>
TestTensor counting(const Shape& shape) {
  return TestTensor::from<T>(shape, [](std::int64_t i) { return T(static_cast<float>(i % 113)); });
}

std::vector<std::int64_t> index_of(const Shape& shape, std::size_t i) {
  std::vector<std::int64_t> index(shape.rank());
  for (std::size_t axis = shape.rank(); axis-- > 0; i /= static_cast<std::size_t>(shape[axis]))
    index[axis] = static_cast<std::int64_t>(i) % shape[axis];
  return index;
}
std::size_t position_of(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) position = position * shape[axis] + index[axis];
  return static_cast<std::size_t>(position);
}

void expect_transposed(const TestTensor& x, const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t axis : permutation) sizes.push_back(x.shape()[static_cast<std::size_t>(axis)]);
  TestTensor y(x.dtype(), Shape(sizes).or_scalar());
  transpose(x.view(), permutation, y.view());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto index = index_of(y.shape(), i);
    std::vector<std::int64_t> source(index.size());
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      source[static_cast<std::size_t>(permutation[axis])] = index[axis];
    ASSERT_EQ(y.at(i), x.at(position_of(x.shape(), source))) << x.dtype() << x.shape() << " at " << i;
  }
}

TEST(Transpose, PermutesEveryShapeAndDtype) {
  for (const Shape& shape :
       {Shape{3, 4, 5}, Shape{40, 70}, Shape{2, 33, 3, 35}, Shape{1, 7, 1}, Shape{0, 3}, Shape{5}}) {
    std::vector<std::int64_t> permutation(shape.rank());
    for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i);
    do {
      expect_transposed(counting<bool>(shape), permutation);
      expect_transposed(counting<float16>(shape), permutation);
      expect_transposed(counting<float>(shape), permutation);
      expect_transposed(counting<std::int64_t>(shape), permutation);
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
  expect_transposed(counting<float>(Shape::scalar()), {});
}

TEST(CopyBox, SlicesWithStepsAndReversal) {
  const TestTensor x = counting<float>({10, 12});
  TestTensor y(f32, {3, 4});
  copy_box(x.view(), box_layout(x.shape(), std::vector<std::int64_t>{8, 1}, std::vector<std::int64_t>{-3, 2}), y.view(),
           box_layout(y.shape(), {}), y.shape());
  for (std::size_t i = 0; i < 12; ++i) ASSERT_EQ(y.at(i), x.at((8 - i / 4 * 3) * 12 + 1 + i % 4 * 2));
}

TEST(CopyBox, WritesABoxAndLeavesTheRest) {
  const TestTensor x = counting<std::int32_t>({2, 3});
  TestTensor y = TestTensor::from<std::int32_t>({4, 6}, [](std::int64_t) { return -1; });
  copy_box(x.view(), box_layout(x.shape(), {}), y.view(), box_layout(y.shape(), std::vector<std::int64_t>{1, 2}),
           x.shape());
  for (std::size_t i = 0; i < 24; ++i) {
    const std::size_t row = i / 6, column = i % 6;
    const bool inside = row >= 1 && row < 3 && column >= 2 && column < 5;
    ASSERT_EQ(y.at(i), inside ? x.at((row - 1) * 3 + column - 2) : -1);
  }
}

TEST(Concat, JoinsAlongAnyAxis) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::vector<std::int64_t> left = {3, 4, 5}, right = left, sizes = left;
    right[axis] = 2, sizes[axis] += 2;
    const TestTensor a = counting<float>(Shape(left)), b = counting<float>(Shape(right));
    TestTensor out(f32, Shape(sizes));
    EXPECT_EQ(concat_part(b.view(), axis, concat_part(a.view(), axis, 0, out.view()), out.view()), sizes[axis]);
    for (std::size_t i = 0; i < out.size(); ++i) {
      auto index = index_of(out.shape(), i);
      const bool first = index[axis] < left[axis];
      if (!first) index[axis] -= left[axis];
      ASSERT_EQ(out.at(i), first ? a.at(position_of(a.shape(), index)) : b.at(position_of(b.shape(), index)));
    }
  }
}

TEST(Tile, RepeatsAlongEachAxis) {
  const TestTensor x = counting<std::int16_t>({2, 3, 1});
  TestTensor out(i16, {4, 3, 5});
  tile(x.view(), out.view());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto index = index_of(out.shape(), i);
    ASSERT_EQ(out.at(i), x.at(position_of(x.shape(), {index[0] % 2, index[1] % 3, 0})));
  }
}

TEST(Gather, TakesSlicesByNumberAlongAnyAxis) {
  const std::int32_t narrow[] = {2, 0, 2, 1};
  const std::int64_t wide[] = {2, 0, 2, 1};
  const TestTensor x = counting<float>({3, 4, 5});
  TestTensor rows(f32, {2, 2, 4, 5}), columns(f32, {3, 4, 5});
  gather(x.view(), {narrow, 0, i32, {2, 2}}, 0, rows.view());
  gather(x.view(), {wide, 0, i64, {4}}, 1, columns.view());
  for (std::size_t i = 0; i < rows.size(); ++i)
    ASSERT_EQ(rows.at(i), x.at(static_cast<std::size_t>(narrow[i / 20]) * 20 + i % 20));
  for (std::size_t i = 0; i < columns.size(); ++i)
    ASSERT_EQ(columns.at(i), x.at(i / 20 * 20 + static_cast<std::size_t>(wide[i / 5 % 4]) * 5 + i % 5));
  EXPECT_EQ(first_bad_index({wide, 0, i64, {4}}, 3), -1);
  EXPECT_EQ(first_bad_index({narrow, 0, i32, {4}}, 2), 0);
}

TEST(Scatter, AddsOrOverwritesInOrder) {
  const std::int64_t indices[] = {2, 0, 2};
  const TestTensor updates = counting<float>({3, 200});
  TestTensor sum = TestTensor::from<float>({3, 200}, [](std::int64_t) { return 1.f; }), last = sum;
  scatter_add(updates.view(), {indices, 0, i64, {3}}, sum.view());
  scatter(updates.view(), {indices, 0, i64, {3}}, last.view());
  for (std::size_t c = 0; c < 200; ++c) {
    ASSERT_EQ(sum.at(c), 1 + updates.at(200 + c));
    ASSERT_EQ(sum.at(200 + c), 1);
    ASSERT_EQ(sum.at(400 + c), 1 + updates.at(c) + updates.at(400 + c));
    ASSERT_EQ(last.at(400 + c), updates.at(400 + c));
    ASSERT_EQ(last.at(200 + c), 1);
  }
}

TEST(OneHot, MarksTheIndexAndNothingOutside) {
  const std::int32_t indices[] = {1, -1, 3, 0};
  TestTensor out(f32, {4, 3});
  one_hot({indices, 0, i32, {4}}, out.view());
  const std::vector<double> expected = {0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0};
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(out.at(i), expected[i]);
}

}  // namespace
}  // namespace plimsoll
