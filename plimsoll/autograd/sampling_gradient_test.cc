// Gradients of resampled axes, sampled grids and rows combined at indices, against differences of values.
#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/ops/grid_sample.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/resample.h"
#include "plimsoll/ops/scatter_reduce.h"

namespace plimsoll {
namespace {

TEST(ResampleGradient, AgreesWithDifferencesInEveryMode) {
  const Tensor x = varied({2, 4, 3});
  for (const ResampleMode mode : {ResampleMode::nearest, ResampleMode::linear, ResampleMode::cubic})
    for (const std::int64_t to : {3, 7}) {
      const ResampleRule rule{.from = 4, .to = to, .scale = double(to) / 4, .mode = mode, .antialias = to == 3};
      expect_gradients([&](const Tensors& t) { return resample(square(t[0]), 1, rule); }, {x});
    }
}

TEST(ResampleGradient, DoesNotReachWhatLiesOutsideOfACrop) {
  const ResampleRule rule{.from = 4,
                          .to = 5,
                          .scale = 1.25,
                          .mode = ResampleMode::linear,
                          .place = ResamplePlace::tf_crop_and_resize,
                          .begin = 0.4,
                          .end = 1.3,
                          .outside = 9};
  expect_gradients([&](const Tensors& t) { return resample(square(t[0]), 0, rule); }, {varied({4, 2})});
}

TEST(GridSampleGradient, AgreesWithDifferencesOfImageAndGrid) {
  const Tensor x = varied({2, 3, 4, 2}), grid = varied({2, 5, 2}, -1.4, 1.4, 0.8);
  for (const ResampleMode mode : {ResampleMode::linear, ResampleMode::cubic})
    for (const GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
      for (const bool align : {false, true}) {
        const GridRule rule{mode, padding, align};
        expect_gradients([&](const Tensors& t) { return grid_sample(t[0], t[1], rule); }, {x, grid}, false);
      }
  expect_gradients([&](const Tensors& t) { return grid_sample(t[0], grid, {ResampleMode::nearest}); }, {x}, false);
}

TEST(GridSampleGradient, OfVolumesAndSequencesToo) {
  expect_gradients([](const Tensors& t) { return grid_sample(t[0], t[1], {}); },
                   {varied({1, 3, 2, 4, 2}), varied({1, 4, 3}, -0.9, 0.9, 0.2)}, false);
  expect_gradients([](const Tensors& t) { return grid_sample(t[0], t[1], {}); },
                   {varied({2, 5, 3}), varied({2, 4, 1}, -0.9, 0.9, 0.2)}, false);
}

TEST(GridSampleGradient, RefusesASecondDerivative) {
  const Tensor x = varied({1, 3, 3, 1}), grid = varied({1, 2, 2});
  GradientTape outer;
  outer.watch(grid);
  GradientTape inner;
  inner.watch(x);
  const Tensor slope = inner.gradient(square(grid_sample(x, grid, {})).sum(), {x})[0];
  EXPECT_THROW(outer.gradient(slope.sum(), {grid}), Unsupported);
}

TEST(ScatterReduceGradient, AgreesWithDifferences) {
  const Tensor x = varied({4, 3}), updates = varied({3, 3}, -1, 1, 0.6), rows = constant({2, 0, 2});
  for (const ScatterReduction reduction :
       {ScatterReduction::multiply, ScatterReduction::maximum, ScatterReduction::minimum})
    expect_gradients([&](const Tensors& t) { return scatter_reduce(t[0], rows, t[1], reduction); }, {x, updates});
}

TEST(ScatterReduceGradient, OfAProductWithAZeroIsTheProductOfTheOthers) {
  const Tensor x = constant({2.0, 3.0}), updates = constant({0.0, 5.0}), rows = constant({0, 0});
  GradientTape tape;
  tape.watch(x);
  tape.watch(updates);
  const auto slopes = tape.gradient(scatter_reduce(x, rows, updates, ScatterReduction::multiply).sum(), {x, updates});
  EXPECT_EQ(slopes[0].to_vector<double>(), (std::vector<double>{0, 1}));
  EXPECT_EQ(slopes[1].to_vector<double>(), (std::vector<double>{10, 0}));
}

}  // namespace
}  // namespace plimsoll
