#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(OneHot, PutsAOneAtEachIndex) {
  const Tensor y = one_hot(constant({1, 0, 3, -1}), 3);
  EXPECT_EQ(y.shape(), Shape({4, 3}));
  EXPECT_EQ(y.dtype(), f32);
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(one_hot(zeros({2, 3}, i64), 4).shape(), Shape({2, 3, 4}));
  EXPECT_THAT(one_hot(constant(1), 2).to_vector<float>(), ElementsAre(0, 1));
}

TEST(OneHot, MakesEveryDtypeAndOtherValues) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_THAT(one_hot(constant({1}), 3, dtype).cast(f32).to_vector<float>(), ElementsAre(0, 1, 0));
    EXPECT_THAT(one_hot(constant({1}).cast(i64), 3, dtype, 0, 1).cast(f32).to_vector<float>(), ElementsAre(1, 0, 1));
  }
  EXPECT_THAT(one_hot(constant({2, 5}), 3, f32, 0.9f, 0.1f).to_vector<float>(),
              ElementsAre(0.1f, 0.1f, 0.9f, 0.1f, 0.1f, 0.1f));
}

TEST(OneHot, TakesTensorsWithoutElements) {
  EXPECT_EQ(one_hot(zeros({0}, i32), 3).shape(), Shape({0, 3}));
  EXPECT_EQ(one_hot(zeros({2}, i32), 0, f32, 5, 4).shape(), Shape({2, 0}));
}

TEST(OneHot, RefusesOtherThanIndices) {
  EXPECT_THAT([] { one_hot(constant({1.f}), 3); },
              ThrowsMessage<InvalidArgument>("one_hot: indices are float32; cast them to int32 or int64"));
  EXPECT_THAT([] { one_hot(constant({1}), -1); },
              ThrowsMessage<InvalidArgument>("one_hot: depth -1 for indices [1]; give 0 or more"));
  EXPECT_THAT([] { one_hot(Tensor(), 3); }, ThrowsMessage<InvalidArgument>(HasSubstr("one_hot: indices is an empty")));
}

TEST(OneHot, InfersUnknownSizesAndIsAConstantToTapes) {
  Recording recording;
  recording.watch([] { return one_hot(constant({1}), 3); });
  const Shape shape = {-1};
  const SpecRef spec{&shape, i32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({-1, 3}));
  EXPECT_FALSE(recording.op(0).facts().has_gradient);
}

}  // namespace
}  // namespace plimsoll
