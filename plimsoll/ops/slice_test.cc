#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Tensor counted() { return arange(0, 12).reshape({3, 4}); }

TEST(Slice, CutsEveryAxis) {
  const Tensor part = counted().slice({1, 1}, {2, 2});
  EXPECT_EQ(part.shape(), Shape({2, 2}));
  EXPECT_THAT(part.to_vector<int>(), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(slice(counted(), {0, 3}, {-1, -1}).to_vector<int>(), ElementsAre(3, 7, 11));
}

TEST(Slice, LeavesAxesThatAreNotGivenWhole) {
  EXPECT_THAT(counted().slice({2}, {1}).to_vector<int>(), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(counted().slice({}, {}).to_vector<int>(), counted().to_vector<int>());
  EXPECT_EQ(constant(3).slice({}, {}).item<int>(), 3);
}

TEST(Slice, MovesEveryDtype) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor x = constant({{0.f, 1.f, 0.f}, {1.f, 1.f, 0.f}}).cast(static_cast<DType>(i));
    EXPECT_THAT(x.slice({0, 1}, {2, 2}).cast(f32).to_vector<float>(), ElementsAre(1, 0, 1, 0));
    EXPECT_THAT(x.slice({1}, {1}).cast(f32).to_vector<float>(), ElementsAre(1, 1, 0));
    EXPECT_THAT(strided_slice(x, {0, 2}, {2, kOpen}, {1, -2}).cast(f32).to_vector<float>(), ElementsAre(0, 0, 0, 1));
    EXPECT_THAT(reverse(x).cast(f32).to_vector<float>(), ElementsAre(0, 1, 1, 0, 1, 0));
  }
}

TEST(Slice, OfTheFirstAxisIsATensorMoreOnTheSameBuffer) {
  const Tensor x = counted();
  const MemoryInfo before = memory();
  const Tensor rows = x.slice({1, 0}, {2, 4}), last = rows.slice({1}, {1}), none = x.slice({3, 0}, {0, -1});
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 3);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(rows.view().bytes(), x.view().bytes() + 16);
  EXPECT_THAT(last.to_vector<int>(), ElementsAre(8, 9, 10, 11));
  EXPECT_EQ(none.shape(), Shape({0, 4}));
  const Tensor column = x.slice({0, 0}, {-1, 2});
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 1);
}

TEST(Slice, OnASharedBufferOutlivesTheWhole) {
  Tensor x = counted();
  const Tensor row = x.slice({1}, {1});
  x.dispose();
  EXPECT_THAT(row.to_vector<int>(), ElementsAre(4, 5, 6, 7));
}

TEST(Slice, TakesTensorsWithoutElements) {
  EXPECT_EQ(zeros({0, 4}).slice({0, 1}, {-1, 2}).shape(), Shape({0, 2}));
  EXPECT_EQ(counted().slice({0, 4}, {3, -1}).shape(), Shape({3, 0}));
  EXPECT_EQ(strided_slice(zeros({0, 4}), {kOpen, kOpen}, {kOpen, kOpen}, {-1, -1}).shape(), Shape({0, 4}));
  EXPECT_EQ(reverse(zeros({2, 0})).shape(), Shape({2, 0}));
}

TEST(Slice, RefusesWhatIsOutsideOfTheAxes) {
  const Tensor x = counted();
  EXPECT_THAT(
      [&] {
        x.slice({0, 2}, {1, 3});
      },
      ThrowsMessage<InvalidArgument>("slice: begin 2 and size 3 are outside of axis 1 of shape [3, 4]; use 0 <= "
                                     "begin, and size -1 for the rest"));
  EXPECT_THROW(x.slice({-1, 0}, {1, 1}), InvalidArgument);
  EXPECT_THROW(x.slice({4, 0}, {-1, 1}), InvalidArgument);
  EXPECT_THROW(x.slice({1, 0}, {-2, 1}), InvalidArgument);
  EXPECT_THROW(x.slice({1, 0}, {INT64_MAX, 1}), InvalidArgument);
  EXPECT_THAT(
      [&] {
        x.slice({0, 0}, {1});
      },
      ThrowsMessage<InvalidArgument>("slice: begin [0, 0] and size [1] for shape [3, 4]; give both for each axis"));
  EXPECT_THROW(x.slice({0, 0, 0}, {1, 1, 1}), InvalidArgument);
  EXPECT_THAT([] { Tensor().slice({0}, {1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("slice: x is an empty handle")));
  x.dispose();
  EXPECT_THROW(x.slice({0}, {1}), Disposed);
}

TEST(Slice, InfersUnknownSizes) {
  Recording recording;
  recording.watch([] { return zeros({5, 4, 3}).slice({1, 0, 1}, {-1, 2, -1}); });
  const Shape shape = {-1, -1, 3};
  const SpecRef spec{&shape, f32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({-1, 2, 2}));
}

TEST(Slice, HasGradientsOfAllOrders) {
  check_linear([](const Tensor& x) { return x.slice({1, 1}, {2, 2}); }, whole_numbers({3, 4}), 3);
  check_linear([](const Tensor& x) { return x.slice({1}, {1}); }, whole_numbers({3, 2}));
  check_linear([](const Tensor& x) { return x.slice({}, {}); }, whole_numbers({3, 2}));
  check_linear([](const Tensor& x) { return x.slice({1, 0}, {0, -1}); }, whole_numbers({3, 2}), 1);
}

TEST(StridedSlice, FollowsNumPy) {
  const Tensor x = arange(0, 8);
  EXPECT_THAT(strided_slice(x, {1}, {7}, {2}).to_vector<int>(), ElementsAre(1, 3, 5));
  EXPECT_THAT(strided_slice(x, {1}, {8}, {3}).to_vector<int>(), ElementsAre(1, 4, 7));
  EXPECT_THAT(strided_slice(x, {-3}, {-1}).to_vector<int>(), ElementsAre(5, 6));
  EXPECT_THAT(strided_slice(x, {-100}, {100}, {5}).to_vector<int>(), ElementsAre(0, 5));
  EXPECT_THAT(strided_slice(x, {6}, {1}, {-2}).to_vector<int>(), ElementsAre(6, 4, 2));
  EXPECT_THAT(strided_slice(x, {2}, {-9}, {-1}).to_vector<int>(), ElementsAre(2, 1, 0));
  EXPECT_THAT(strided_slice(x, {2}, {kOpen}, {-1}).to_vector<int>(), ElementsAre(2, 1, 0));
  EXPECT_THAT(strided_slice(x, {kOpen}, {5}, {-1}).to_vector<int>(), ElementsAre(7, 6));
  EXPECT_THAT(strided_slice(x, {kOpen}, {kOpen}, {4}).to_vector<int>(), ElementsAre(0, 4));
  EXPECT_THAT(strided_slice(x, {100}, {0}, {-7}).to_vector<int>(), ElementsAre(7));
  EXPECT_THAT(strided_slice(x, {3}, {100}, {INT64_MAX}).to_vector<int>(), ElementsAre(3));
  EXPECT_THAT(strided_slice(x, {3}, {kOpen}, {-INT64_MAX}).to_vector<int>(), ElementsAre(3));
  EXPECT_THAT(strided_slice(x, {5}, {2}).to_vector<int>(), IsEmpty());
  EXPECT_THAT(strided_slice(x, {2}, {5}, {-1}).to_vector<int>(), IsEmpty());
}

TEST(StridedSlice, StepsAlongSeveralAxes) {
  const Tensor y = strided_slice(counted(), {kOpen, 3}, {kOpen, 0}, {2, -2});
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(3, 1, 11, 9));
  EXPECT_THAT(strided_slice(counted(), {-1}, {kOpen}).to_vector<int>(), ElementsAre(8, 9, 10, 11));
}

TEST(StridedSlice, RefusesStridesOfZeroAndListsThatDiffer) {
  const Tensor x = counted();
  EXPECT_THAT([&] { strided_slice(x, {0}, {2}, {0}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("strided_slice: stride 0 on axis 0 of shape [3, 4]")));
  EXPECT_THROW(strided_slice(x, {0}, {2}, {INT64_MIN}), InvalidArgument);
  EXPECT_THAT(
      [&] {
        strided_slice(x, {0}, {2, 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("1 begins, 2 ends and 0 strides for shape [3, 4]")));
  EXPECT_THROW(strided_slice(x, {0, 0}, {1, 1}, {1}), InvalidArgument);
  EXPECT_THROW(strided_slice(x, {0, 0, 0}, {1, 1, 1}), InvalidArgument);
}

TEST(StridedSlice, InfersUnknownSizes) {
  Recording recording;
  const Tensor x = zeros({2, 4});
  const Tensor y = recording.watch([&] { return strided_slice(x, {kOpen, 1}, {kOpen, 4}, {1, 2}); });
  const Shape shape = {-1, 4};
  const SpecRef spec{&shape, f32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({-1, 2}));
}

TEST(StridedSlice, HasGradientsOfAllOrders) {
  check_linear(
      [](const Tensor& x) {
        return strided_slice(x, {kOpen, 3}, {kOpen, 0}, {2, -2});
      },
      whole_numbers({3, 4}), 3);
  check_linear([](const Tensor& x) { return strided_slice(x, {1}, {7}, {2}); }, whole_numbers({8}));
}

TEST(Reverse, TurnsTheAxesAround) {
  EXPECT_THAT(reverse(counted(), {1}).to_vector<int>(), ElementsAre(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8));
  EXPECT_THAT(reverse(counted(), {0}).to_vector<int>(), ElementsAre(8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
  EXPECT_THAT(flip(counted()).to_vector<int>(), ElementsAre(11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  EXPECT_EQ(reverse(constant(4)).item<int>(), 4);
  EXPECT_THROW(reverse(counted(), {2}), InvalidArgument);
  EXPECT_THROW(reverse(Tensor()), InvalidArgument);
  check_linear([](const Tensor& x) { return reverse(x, {-1}); }, whole_numbers({2, 3}));
}

TEST(Roll, BringsElementsInAgainAtTheOtherEnd) {
  EXPECT_THAT(roll(arange(0, 5), 2).to_vector<int>(), ElementsAre(3, 4, 0, 1, 2));
  EXPECT_THAT(roll(arange(0, 5), -6).to_vector<int>(), ElementsAre(1, 2, 3, 4, 0));
  EXPECT_THAT(roll(arange(0, 5), 10).to_vector<int>(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(roll(counted(), 1, 1).to_vector<int>(), ElementsAre(3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10));
  EXPECT_EQ(roll(zeros({0, 2}), 3).shape(), Shape({0, 2}));
  EXPECT_THROW(roll(constant(1), 1), InvalidArgument);
  EXPECT_THROW(roll(Tensor(), 1), InvalidArgument);
  check_linear([](const Tensor& x) { return roll(x, 1, -1); }, whole_numbers({2, 3}));
}

}  // namespace
}  // namespace plimsoll
