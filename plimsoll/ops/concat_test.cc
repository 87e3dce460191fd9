#include <gmock/gmock.h>

#include <array>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Shape inferred(const Op& op, const std::vector<Shape>& shapes) {
  std::vector<SpecRef> specs;
  for (const Shape& shape : shapes) specs.push_back({&shape, f32});
  SpecList out;
  op.infer(Specs(specs), out);
  return out[0].shape;
}

TEST(Concat, JoinsAlongAnAxis) {
  const Tensor a = constant({{1, 2}, {3, 4}}), b = constant({{5, 6}});
  EXPECT_EQ(concat({a, b}).shape(), Shape({3, 2}));
  EXPECT_THAT(concat({a, b}, 0).to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(concat({a, a.slice({0, 1}, {-1, 1})}, 1).to_vector<int>(), ElementsAre(1, 2, 2, 3, 4, 4));
  EXPECT_THAT(concat({a, b, a}, -2).to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4));
}

TEST(Concat, TakesVectorsAndArrays) {
  const Tensor a = constant({1, 2});
  const std::vector<Tensor> many(20, a);
  EXPECT_EQ(concat(many).size(), 40u);
  EXPECT_THAT(concat(std::array<Tensor, 2>{a, a}).to_vector<int>(), ElementsAre(1, 2, 1, 2));
}

TEST(Concat, MovesEveryDtype) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor x = constant({0.f, 1.f}).cast(static_cast<DType>(i));
    EXPECT_THAT(concat({x, x}).cast(f32).to_vector<float>(), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(stack({x, x}, 1).cast(f32).to_vector<float>(), ElementsAre(0, 0, 1, 1));
  }
}

TEST(Concat, OfOneTensorIsOnTheSameBuffer) {
  const Tensor a = constant({{1, 2}, {3, 4}});
  const MemoryInfo before = memory();
  const Tensor same = concat({a}, 1);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  same.dispose();
  EXPECT_FALSE(a.is_disposed());
}

TEST(Concat, TakesTensorsWithoutElements) {
  const Tensor none = zeros({0, 2}, i32), a = constant({{1, 2}});
  EXPECT_THAT(concat({none, a, none}).to_vector<int>(), ElementsAre(1, 2));
  EXPECT_EQ(concat({none, none}, 1).shape(), Shape({0, 4}));
}

TEST(Concat, RefusesTensorsThatDoNotFit) {
  const Tensor a = zeros({2, 3}), b = zeros({2, 4});
  EXPECT_THAT(
      [&] {
        concat({a, b}, 0);
      },
      ThrowsMessage<InvalidArgument>("concat: operand 0 is [2, 3], operand 1 is [2, 4]; all sizes but that of "
                                     "axis 0 must be equal"));
  EXPECT_THROW(concat({a, zeros({2})}, 0), InvalidArgument);
  EXPECT_THAT(
      [&] {
        concat({a, a.cast(i32)});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("operand 1 [2, 3] is int32")));
  EXPECT_THAT([&] { concat({a, a}, 2); }, ThrowsMessage<InvalidArgument>(HasSubstr("concat: axis 2 is outside")));
  EXPECT_THROW(concat({a}, 2), InvalidArgument);
  EXPECT_THROW(concat({constant(1.f), constant(2.f)}), InvalidArgument);
  EXPECT_THAT([&] { concat(std::vector<Tensor>()); },
              ThrowsMessage<InvalidArgument>("concat: no tensors; give at least one"));
  EXPECT_THAT(
      [&] {
        concat({a, Tensor()});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("concat: operand 1 is an empty")));
  EXPECT_THROW(concat({Tensor()}), InvalidArgument);
  const Tensor long_one = zeros({Shape::kMostElements, 0});
  EXPECT_THROW(concat({long_one, long_one}), InvalidArgument);
  b.dispose();
  EXPECT_THROW(concat({b, b}, 0), Disposed);
}

TEST(Concat, InfersUnknownSizes) {
  Recording recording;
  const Tensor x = zeros({2, 3});
  recording.watch([&] { return concat({x, x}, 1); });
  EXPECT_EQ(inferred(recording.op(0), {{-1, 3}, {2, 4}}), Shape({2, 7}));
  EXPECT_EQ(inferred(recording.op(0), {{-1, 3}, {-1, -1}}), Shape({-1, -1}));
  EXPECT_EQ(inferred(recording.op(0), {{2, -1}, {2, 1}, {-1, 1}}), Shape({2, -1}));
}

TEST(Concat, GivesEachOperandItsPartOfTheGradient) {
  const Tensor other = whole_numbers({2, 1});
  check_linear(
      [](const Tensor& x) {
        return concat({x * 2.f, x.slice({0, 1}, {-1, 2}), x}, 1);
      },
      whole_numbers({2, 3}));
  check_linear([](const Tensor& x) { return concat({x, x}); }, whole_numbers({2, 3}));
  check_linear([](const Tensor& x) { return concat({x}); }, whole_numbers({2, 3}));
}

TEST(Stack, PutsTensorsSideBySide) {
  const Tensor a = constant({1, 2, 3}), b = constant({4, 5, 6});
  EXPECT_EQ(stack({a, b}).shape(), Shape({2, 3}));
  EXPECT_THAT(stack({a, b}).to_vector<int>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(stack({a, b}, -1).shape(), Shape({3, 2}));
  EXPECT_THAT(stack({a, b}, 1).to_vector<int>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(stack({constant(1), constant(2)}).to_vector<int>(), ElementsAre(1, 2));
  const Tensor c = arange(0, 4).reshape({2, 2});
  EXPECT_THAT(stack(std::vector<Tensor>{c, c + 4}, 1).to_vector<int>(), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_EQ(stack({a}).shape(), Shape({1, 3}));
  EXPECT_EQ(stack({zeros({0, 2}), zeros({0, 2})}, 2).shape(), Shape({0, 2, 2}));
}

TEST(Stack, RefusesTensorsThatDoNotFit) {
  const Tensor a = zeros({2}), b = zeros({3});
  EXPECT_THAT(
      [&] {
        stack({a, b});
      },
      ThrowsMessage<InvalidArgument>("stack: operand 0 is [2], operand 1 is [3]; all shapes must be equal"));
  EXPECT_THROW(stack({a, zeros({2, 1})}), InvalidArgument);
  EXPECT_THROW(stack({a, a}, 2), InvalidArgument);
  EXPECT_THROW(stack({a, a.cast(f64)}), InvalidArgument);
  EXPECT_THROW(stack(std::vector<Tensor>()), InvalidArgument);
  EXPECT_THROW(stack({a, Tensor()}), InvalidArgument);
}

TEST(Stack, InfersUnknownSizesAndHasAGradient) {
  Recording recording;
  const Tensor x = zeros({2, 3});
  recording.watch([&] { return stack({x, x}, 1); });
  EXPECT_EQ(inferred(recording.op(0), {{-1, 3}, {2, -1}}), Shape({2, 2, 3}));
  for (const std::int64_t axis : {0, 1, 2})
    check_linear([&](const Tensor& y) { return stack({y, y * 3.f}, axis); }, whole_numbers({2, 3}));
}

TEST(Unstack, UndoesStack) {
  const Tensor x = arange(0, 6).reshape({2, 3});
  const std::vector<Tensor> rows = unstack(x), columns = unstack(x, -1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].shape(), Shape({3}));
  EXPECT_THAT(rows[1].to_vector<int>(), ElementsAre(3, 4, 5));
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_THAT(columns[2].to_vector<int>(), ElementsAre(2, 5));
  EXPECT_EQ(stack(columns, 1).to_vector<int>(), x.to_vector<int>());
  EXPECT_TRUE(unstack(zeros({0, 3})).empty());
  EXPECT_THROW(unstack(constant(1)), InvalidArgument);
  EXPECT_THROW(unstack(Tensor()), InvalidArgument);
  check_linear([](const Tensor& y) { return unstack(y, 1)[1]; }, whole_numbers({2, 3}));
}

TEST(Unstack, SharesTheBufferAlongTheFirstAxis) {
  const Tensor x = arange(0, 6).reshape({2, 3});
  const MemoryInfo before = memory();
  const std::vector<Tensor> rows = unstack(x);
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST(Split, GivesEqualParts) {
  const Tensor x = arange(0, 8).reshape({4, 2});
  const MemoryInfo before = memory();
  const std::vector<Tensor> parts = split(x, 2, 0);
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 2);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(parts[1].to_vector<int>(), ElementsAre(4, 5, 6, 7));
  const std::vector<Tensor> columns = split(x, 2, 1);
  EXPECT_EQ(columns[1].shape(), Shape({4, 1}));
  EXPECT_THAT(columns[1].to_vector<int>(), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(split(zeros({0, 2}), 3).size(), 3u);
}

TEST(Split, GivesPartsOfTheseSizes) {
  const Tensor x = arange(0, 5);
  const std::vector<Tensor> parts = split(x, {1, 0, 4});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0].to_vector<int>(), ElementsAre(0));
  EXPECT_EQ(parts[1].size(), 0u);
  EXPECT_THAT(parts[2].to_vector<int>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(split(x, {5}).size(), 1u);  // Sizes, not a number of parts.
  EXPECT_EQ(split(x, std::vector<std::int64_t>{2, 3}, -1)[1].size(), 3u);
  check_linear([](const Tensor& y) { return concat({split(y, {1, 2}, 1)[1], y}, 1); }, whole_numbers({2, 3}));
}

TEST(Split, RefusesPartsThatAreNotTheWhole) {
  const Tensor x = zeros({2, 5});
  EXPECT_THAT([&] { split(x, 2, 1); },
              ThrowsMessage<InvalidArgument>("split: axis 1 of shape [2, 5] has size 5, which 2 does not divide; give "
                                             "another number or a list of sizes"));
  EXPECT_THROW(split(x, 0, 1), InvalidArgument);
  EXPECT_THROW(split(x, -1, 1), InvalidArgument);
  EXPECT_THAT(
      [&] {
        split(x, {2, 2}, 1);
      },
      ThrowsMessage<InvalidArgument>("split: sizes [2, 2] do not add up to the 5 of axis 1 of shape [2, 5]"));
  EXPECT_THROW(split(x, {6, -1}, 1), InvalidArgument);
  EXPECT_THROW(split(x, {2, 2, 2}, 1), InvalidArgument);
  EXPECT_THROW(split(x, 2, 2), InvalidArgument);
  EXPECT_THROW(split(Tensor(), 2), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
