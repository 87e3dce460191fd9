#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Pad, AddsAValueAroundEachAxis) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  const Tensor y = pad(x, {{1, 0}, {0, 1}});
  EXPECT_EQ(y.shape(), Shape({3, 3}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(0, 0, 0, 1, 2, 0, 3, 4, 0));
  EXPECT_THAT(pad(x, {{0, 0}, {2, 0}}, 7).to_vector<int>(), ElementsAre(7, 7, 1, 2, 7, 7, 3, 4));
  EXPECT_EQ(pad(x, {{0, 0}, {0, 0}}).to_vector<int>(), x.to_vector<int>());
  EXPECT_EQ(pad(constant(5), {}).item<int>(), 5);
}

TEST(Pad, MovesEveryDtype) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor x = constant({0.f, 1.f}).cast(static_cast<DType>(i));
    EXPECT_THAT(pad(x, {{1, 2}}, 1).cast(f32).to_vector<float>(), ElementsAre(1, 0, 1, 1, 1));
    EXPECT_THAT(mirror_pad(x, {{1, 1}}, "reflect").cast(f32).to_vector<float>(), ElementsAre(1, 0, 1, 0));
  }
}

TEST(Pad, FillsTensorsWithoutElements) {
  const Tensor y = pad(zeros({0, 2}), {{1, 1}, {0, 0}}, 3.f);
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(y.to_vector<float>(), Each(3.f));
  EXPECT_EQ(pad(zeros({0, 2}), {{0, 0}, {1, 1}}).shape(), Shape({0, 4}));
}

TEST(Pad, RefusesWhatDoesNotFitTheAxes) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(
      [&] {
        pad(x, {{1, 1}});
      },
      ThrowsMessage<InvalidArgument>("pad: 1 paddings for shape [2, 3] of 2 axes; give a pair for each axis"));
  EXPECT_THAT(
      [&] {
        pad(x, {{0, 0}, {-1, 0}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("pad: -1 before and 0 after axis 1 of shape [2, 3]")));
  EXPECT_THROW(pad(x, {{0, 0}, {0, -1}}), InvalidArgument);
  EXPECT_THROW(pad(x, {{INT64_MAX, 1}, {0, 0}}), InvalidArgument);
  EXPECT_THROW(pad(x, {{INT64_MAX, 0}, {0, 0}}), InvalidArgument);
  EXPECT_THROW(pad(Tensor(), {}), InvalidArgument);
  x.dispose();
  EXPECT_THROW(pad(x, {{0, 0}, {0, 0}}), Disposed);
}

TEST(Pad, InfersUnknownSizes) {
  Recording recording;
  recording.watch([] { return pad(zeros({2, 3}), {{0, 0}, {1, 1}}); });
  const Shape shape = {-1, 3};
  const SpecRef spec{&shape, f32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({-1, 5}));
}

TEST(Pad, HasGradientsOfAllOrders) {
  check_linear([](const Tensor& x) { return pad(x, {{1, 0}, {0, 2}}); }, whole_numbers({2, 3}), 3);
  check_linear([](const Tensor& x) { return pad(x, {{0, 0}, {0, 0}}); }, whole_numbers({2, 3}));
}

TEST(MirrorPad, ReflectsWithoutTheEdge) {
  const Tensor x = constant({{1, 2, 3}, {4, 5, 6}});
  const Tensor y = mirror_pad(x, {{1, 0}, {2, 1}}, "reflect");
  EXPECT_EQ(y.shape(), Shape({3, 6}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5));
}

TEST(MirrorPad, BeginsWithTheEdgeWhenSymmetric) {
  EXPECT_THAT(mirror_pad(constant({1, 2, 3}), {{2, 3}}, "symmetric").to_vector<int>(),
              ElementsAre(2, 1, 1, 2, 3, 3, 2, 1));
  EXPECT_EQ(mirror_pad(zeros({0, 2}), {{0, 0}, {1, 1}}, "symmetric").shape(), Shape({0, 4}));
  check_linear([](const Tensor& x) { return mirror_pad(x, {{1, 1}, {2, 0}}, "symmetric"); }, whole_numbers({2, 3}));
  check_linear([](const Tensor& x) { return mirror_pad(x, {{0, 1}, {2, 1}}, "reflect"); }, whole_numbers({2, 3}));
}

TEST(MirrorPad, RefusesMoreThanThereIs) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(
      [&] {
        mirror_pad(x, {{0, 2}, {0, 0}}, "reflect");
      },
      ThrowsMessage<InvalidArgument>(
          "mirror_pad: 0 before and 2 after axis 0 of shape [2, 3]; \"reflect\" can give 0 to 1"));
  EXPECT_THROW(mirror_pad(x, {{0, 3}, {0, 0}}, "symmetric"), InvalidArgument);
  EXPECT_THROW(mirror_pad(x, {{0, -1}, {0, 0}}, "symmetric"), InvalidArgument);
  EXPECT_THROW(mirror_pad(x, {{0, 1}}, "symmetric"), InvalidArgument);
  EXPECT_THAT(
      [&] {
        mirror_pad(x, {{0, 1}, {0, 0}}, "wrap");
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("\"wrap\" is not a mode; use \"reflect\", \"symmetric\"")));
  EXPECT_THROW(mirror_pad(Tensor(), {}, "reflect"), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
