#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Tile, RepeatsTheWholeAlongEachAxis) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  EXPECT_EQ(tile(x, {1, 2}).shape(), Shape({2, 4}));
  EXPECT_THAT(tile(x, {1, 2}).to_vector<int>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(tile(x, {2, 2}).to_vector<int>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(tile(x.reshape({4, 1}), {1, 2}).to_vector<int>(), ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_EQ(tile(constant(3), {}).item<int>(), 3);
}

TEST(Tile, TakesManyAxes) {  // More of them than one copy can have.
  const Tensor x = arange(0, 16).reshape({2, 2, 2, 2}), y = tile(x, {2, 2, 2, 2});
  ASSERT_EQ(y.shape(), Shape({4, 4, 4, 4}));
  for (std::int64_t i = 0; i < 256; ++i)
    ASSERT_EQ(y.at<int>({i / 64, i / 16 % 4, i / 4 % 4, i % 4}), x.at<int>({i / 64 % 2, i / 16 % 2, i / 4 % 2, i % 2}));
}

TEST(Tile, MovesEveryDtypeAndTensorsWithoutElements) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const Tensor x = constant({0.f, 1.f}).cast(static_cast<DType>(i));
    EXPECT_THAT(tile(x, {2}).cast(f32).to_vector<float>(), ElementsAre(0, 1, 0, 1));
  }
  EXPECT_EQ(tile(zeros({0, 2}), {3, 2}).shape(), Shape({0, 4}));
  EXPECT_EQ(tile(zeros({3, 2}), {0, 2}).shape(), Shape({0, 4}));
}

TEST(Tile, RefusesWhatDoesNotFitTheAxes) {
  const Tensor x = zeros({2, 3});
  EXPECT_THAT(
      [&] { tile(x, {2}); },
      ThrowsMessage<InvalidArgument>("tile: multiples [2] for shape [2, 3]; give a number, 0 or more, for each axis"));
  EXPECT_THROW(tile(x, {1, -1}), InvalidArgument);
  EXPECT_THROW(tile(x, {1, INT64_MAX}), InvalidArgument);
  EXPECT_THROW(tile(Tensor(), {}), InvalidArgument);
  x.dispose();
  EXPECT_THROW(tile(x, {1, 1}), Disposed);
}

TEST(Tile, InfersUnknownSizesAndSumsItsGradient) {
  Recording recording;
  recording.watch([] { return tile(zeros({2, 3}), {2, 2}); });
  const Shape shape = {-1, 3};
  const SpecRef spec{&shape, f32};
  SpecList out;
  recording.op(0).infer(Specs({&spec, 1}), out);
  EXPECT_EQ(out[0].shape, Shape({-1, 6}));
  check_linear([](const Tensor& x) { return tile(x, {2, 3}); }, whole_numbers({2, 2}));
  check_linear([](const Tensor& x) { return tile(x, {1, 3}); }, whole_numbers({2, 2}));
  check_linear([](const Tensor& x) { return tile(x, {1, 1}); }, whole_numbers({2, 2}));
  check_linear([](const Tensor& x) { return tile(x, {0, 1}); }, whole_numbers({2, 2}), 1);
}

TEST(Repeat, RepeatsEachPosition) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  EXPECT_EQ(repeat(x, 2, 0).shape(), Shape({4, 2}));
  EXPECT_THAT(repeat(x, 2, 0).to_vector<int>(), ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(repeat(x, 3, -1).to_vector<int>(), ElementsAre(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4));
  EXPECT_EQ(repeat(x, 0, 1).shape(), Shape({2, 0}));
  EXPECT_THAT([&] { repeat(x, -1, 0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("repeat: -1 times for shape [2, 2]")));
  EXPECT_THROW(repeat(x, 1, 2), InvalidArgument);
  EXPECT_THROW(repeat(Tensor(), 1, 0), InvalidArgument);
  check_linear([](const Tensor& y) { return repeat(y, 2, 1); }, whole_numbers({2, 3}));
}

}  // namespace
}  // namespace plimsoll
