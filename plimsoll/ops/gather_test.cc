#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor counted() { return arange(0, 6).reshape({3, 2}); }

TEST(Gather, ChoosesRows) {
  const Tensor y = gather(counted(), constant({2, 0, 2}));
  EXPECT_EQ(y.shape(), Shape({3, 2}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(4, 5, 0, 1, 4, 5));
  EXPECT_THAT(gather(counted(), constant({1}).cast(i64)).to_vector<int>(), ElementsAre(2, 3));
}

TEST(Gather, TakesIndicesInBraces) {
  EXPECT_THAT(gather(counted(), {2, 0}).to_vector<int>(), ElementsAre(4, 5, 0, 1));
  EXPECT_THAT(gather(counted(), {1}, 1).to_vector<int>(), ElementsAre(1, 3, 5));
  EXPECT_EQ(gather(counted(), {}).shape(), Shape({0, 2}));
  EXPECT_THROW(gather(counted(), {3}), InvalidArgument);
}

TEST(Gather, ChoosesAlongAnotherAxis) {
  EXPECT_THAT(gather(counted(), constant({1, 1}), 1).to_vector<int>(), ElementsAre(1, 1, 3, 3, 5, 5));
  EXPECT_THAT(gather(counted(), constant({0}), -1).to_vector<int>(), ElementsAre(0, 2, 4));
}

TEST(Gather, PutsTheShapeOfTheIndicesInPlaceOfTheAxis) {
  const Tensor x = zeros({4, 5, 6});
  EXPECT_EQ(gather(x, zeros({2, 3}, i32), 1).shape(), Shape({4, 2, 3, 6}));
  EXPECT_EQ(gather(x, constant(1), 1).shape(), Shape({4, 6}));
  EXPECT_EQ(gather(x, zeros({0}, i64)).shape(), Shape({0, 5, 6}));
  EXPECT_EQ(gather(zeros({0, 2}), zeros({0}, i32)).shape(), Shape({0, 2}));
}

TEST(Gather, MovesEveryDtype) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor x = constant({0.f, 1.f}).cast(static_cast<DType>(i));
    EXPECT_THAT(gather(x, constant({1, 0, 1})).cast(f32).to_vector<float>(), ElementsAre(1, 0, 1));
  }
}

TEST(Gather, NamesTheFirstBadIndex) {
  const Tensor x = counted();
  EXPECT_THAT(
      [&] {
        gather(x, constant({{0, 1}, {3, -1}}));
      },
      ThrowsMessage<InvalidArgument>("gather: index 3 at position [1, 0] of the indices [2, 2] is outside of axis "
                                     "0 of shape [3, 2], of size 3; use 0 to 2"));
  EXPECT_THAT([&] { gather(x, constant(-1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("gather: index -1 at position [] of the indices []")));
  EXPECT_THAT(
      [&] {
        gather(zeros({0, 2}), constant({0}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("of size 0; there is nothing to choose from")));
}

TEST(Gather, RefusesOperandsThatDoNotFit) {
  const Tensor x = counted(), indices = constant({0});
  EXPECT_THAT([&] { gather(x, constant({0.f})); },
              ThrowsMessage<InvalidArgument>("gather: indices are float32; cast them to int32 or int64"));
  EXPECT_THROW(gather(x, indices, 2), InvalidArgument);
  EXPECT_THROW(gather(constant(1), indices), InvalidArgument);
  EXPECT_THROW(gather(Tensor(), indices), InvalidArgument);
  EXPECT_THROW(gather(x, Tensor()), InvalidArgument);
  indices.dispose();
  EXPECT_THAT([&] { gather(x, indices); }, ThrowsMessage<Disposed>(HasSubstr("gather: indices is disposed")));
  x.dispose();
  EXPECT_THAT([&] { gather(x, constant({0})); }, ThrowsMessage<Disposed>(HasSubstr("gather: x is disposed")));
}

TEST(Gather, InfersUnknownSizes) {
  Recording recording;
  const Tensor x = counted();
  recording.watch([&] { return gather(x, constant({1, 1}), 1); });
  const Shape shape = {-1, 3}, indices = {-1};
  const SpecRef specs[] = {{&shape, f32}, {&indices, i64}};
  SpecList out;
  recording.op(0).infer(Specs(specs), out);
  EXPECT_EQ(out[0].shape, Shape({-1, -1}));
}

TEST(Gather, AddsItsGradientUpAtTheIndices) {
  check_linear([](const Tensor& x) { return gather(x, constant({2, 0, 2})); }, whole_numbers({3, 2}), 3);
  check_linear([](const Tensor& x) { return gather(x, constant(1)); }, whole_numbers({3, 2}));
  check_linear([](const Tensor& x) { return gather(x, constant({{2, 0}, {2, 2}}), 1); }, whole_numbers({2, 3, 2}));
  check_linear([](const Tensor& x) { return gather(x, constant(0), 2); }, whole_numbers({2, 3, 2}));
  check_linear([](const Tensor& x) { return gather(x, zeros({0}, i32)); }, whole_numbers({3, 2}), 1);
}

TEST(Gather, HasAGradientInHalfPrecision) {
  const Tensor x = constant({{1.f, 2.f}, {3.f, 4.f}}).cast(f16);
  Recording recording;
  const Tensor y = recording.watch([&] { return gather(x, constant({1, 1, 0})); });
  const Tensor gradient = recording.gradient(y, ones_like(y), x);
  EXPECT_EQ(gradient.dtype(), f16);
  EXPECT_THAT(gradient.cast(f32).to_vector<float>(), ElementsAre(1, 1, 2, 2));
}

TEST(EmbeddingLookup, GathersRowsAndNamesTheVocabulary) {
  const Tensor table = constant({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_EQ(embedding_lookup(table, constant({{1, 0}, {0, 0}})).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(embedding_lookup(table, constant({1})).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_THAT(
      [&] {
        embedding_lookup(table, constant({0, 2}));
      },
      ThrowsMessage<InvalidArgument>("embedding_lookup: index 2 at position [1] of the indices [2] is outside of "
                                     "the vocabulary of 2, the rows of the table [2, 2]; use 0 to 1"));
  EXPECT_THROW(embedding_lookup(constant(1.f), constant({0})), InvalidArgument);
  EXPECT_THROW(embedding_lookup(Tensor(), constant({0})), InvalidArgument);
  EXPECT_THAT([&] { embedding_lookup(table, constant({0.f})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("embedding_lookup: ids are float32")));
}

TEST(TakeAlongAxis, ChoosesForEachPlaceOfTheOtherAxes) {
  const Tensor x = constant({{5.f, 1.f, 3.f}, {2.f, 6.f, 4.f}});
  EXPECT_THAT(take_along_axis(x, constant({{1, 2}, {0, 0}}), 1).to_vector<float>(), ElementsAre(1, 3, 2, 2));
  EXPECT_THAT(take_along_axis(x, constant({{1, 0, 1}}).cast(i64), 0).to_vector<float>(), ElementsAre(2, 1, 4));
  EXPECT_EQ(take_along_axis(zeros({0, 3}), zeros({0, 2}, i32), -1).shape(), Shape({0, 2}));
  check_linear(
      [](const Tensor& y) {
        return take_along_axis(y, constant({{{1}, {0}}, {{1}, {1}}}), 2);
      },
      whole_numbers({2, 2, 3}));
}

TEST(TakeAlongAxis, RefusesOperandsThatDoNotFit) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(
      [&] {
        take_along_axis(x, zeros({3, 3}, i32), 1);
      },
      ThrowsMessage<InvalidArgument>("take_along_axis: x is [2, 3], indices are [3, 3]; all sizes but that of "
                                     "axis 1 must be equal"));
  EXPECT_THROW(take_along_axis(x, zeros({2}, i32), 1), InvalidArgument);
  EXPECT_THROW(take_along_axis(x, full({2, 1}, 3), 1), InvalidArgument);
  EXPECT_THROW(take_along_axis(x, zeros({2, 1}), 1), InvalidArgument);
  EXPECT_THROW(take_along_axis(x, Tensor(), 1), InvalidArgument);
  EXPECT_THROW(take_along_axis(Tensor(), x, 1), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
