#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Transpose, ReversesTheAxesWhenNoneAreGiven) {
  const Tensor x = arange(0, 6).reshape({1, 2, 3});
  const Tensor y = x.transpose();
  EXPECT_EQ(y.shape(), Shape({3, 2, 1}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(Transpose, PutsTheNamedAxesInOrder) {
  const Tensor x = arange(0, 12).reshape({2, 3, 2});
  EXPECT_EQ(x.transpose({2, 0, 1}).shape(), Shape({2, 2, 3}));
  EXPECT_THAT(x.transpose({2, 0, 1}).to_vector<int>(), ElementsAre(0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11));
  EXPECT_EQ(transpose(x, {-1, 0, 1}).to_vector<int>(), x.transpose({2, 0, 1}).to_vector<int>());
}

TEST(Transpose, MovesEveryDtype) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor y = constant({{0.f, 1.f, 0.f}, {1.f, 1.f, 0.f}}).cast(static_cast<DType>(i)).transpose({1, 0});
    EXPECT_EQ(y.dtype(), static_cast<DType>(i));
    EXPECT_THAT(y.cast(f32).to_vector<float>(), ElementsAre(0, 1, 1, 1, 0, 0));
  }
}

TEST(Transpose, KeepsTheBufferWhenNoElementMoves) {
  const Tensor column = arange(0, 4).reshape({4, 1}), same = zeros({2, 3});
  const MemoryInfo before = memory();
  const Tensor row = column.transpose(), kept = same.transpose({0, 1}), scalar = constant(2).transpose();
  EXPECT_EQ(row.shape(), Shape({1, 4}));
  EXPECT_THAT(row.to_vector<int>(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 3);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 1);  // That of the scalar.
  EXPECT_EQ(scalar.item<int>(), 2);
}

TEST(Transpose, TakesTensorsWithoutElements) {
  EXPECT_EQ(zeros({0, 3}).transpose().shape(), Shape({3, 0}));
  EXPECT_EQ(zeros({2, 0, 3}).transpose({2, 0, 1}).shape(), Shape({3, 2, 0}));
}

TEST(Transpose, RefusesWhatDoesNotOrderTheAxes) {
  const Tensor x = zeros({2, 3});
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{0}, {0, 0}, {0, 2}, {0, -3}, {0, 1, 2}, {-1, 1}})
    EXPECT_THROW(x.transpose(wrong), InvalidArgument);
  EXPECT_THAT(
      [&] {
        x.transpose({0, 0});
      },
      ThrowsMessage<InvalidArgument>("transpose: [0, 0] does not order the 2 axes of shape [2, 3]; name each once"));
  EXPECT_THAT([] { Tensor().transpose(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("transpose: x is an empty handle")));
  x.dispose();
  EXPECT_THROW(x.transpose(), Disposed);
}

TEST(Transpose, InfersUnknownSizes) {
  Recording recording;
  recording.watch([] { return zeros({2, 3, 4}).transpose({1, 2, 0}); });
  const Shape shape = {-1, 3, 4};
  const SpecRef spec{&shape, f32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({3, 4, -1}));
}

TEST(Transpose, HasTheInverseAsGradient) {
  check_linear([](const Tensor& x) { return x.transpose({1, 2, 0}); }, whole_numbers({2, 3, 2}));
  check_linear([](const Tensor& x) { return x.transpose(); }, whole_numbers({2, 3}));
  check_linear([](const Tensor& x) { return x.transpose({-1, 0}); }, whole_numbers({3, 1}));
}

}  // namespace
}  // namespace plimsoll
