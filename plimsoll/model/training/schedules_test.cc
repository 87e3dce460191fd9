#include "plimsoll/model/training/schedules.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

TEST(Schedules, FollowKerasFormulas) {
  const Schedule smooth = schedules::ExponentialDecay({.initial = 1, .decay_steps = 10, .decay_rate = 0.5});
  EXPECT_DOUBLE_EQ(smooth(0), 1);
  EXPECT_DOUBLE_EQ(smooth(20), 0.25);
  EXPECT_NEAR(smooth(5), std::sqrt(0.5), 1e-12);
  const Schedule stairs =
      schedules::ExponentialDecay({.initial = 1, .decay_steps = 10, .decay_rate = 0.5, .staircase = true});
  EXPECT_DOUBLE_EQ(stairs(19), 0.5);
  const Schedule cosine = schedules::CosineDecay({.initial = 2, .decay_steps = 10, .alpha = 0.1, .warmup_steps = 4});
  EXPECT_DOUBLE_EQ(cosine(2), 1);
  EXPECT_DOUBLE_EQ(cosine(4), 2);
  EXPECT_NEAR(cosine(9), 2 * (0.9 * 0.5 + 0.1), 1e-12);
  EXPECT_NEAR(cosine(100), 0.2, 1e-12);
  const Schedule pieces = schedules::PiecewiseConstantDecay({.boundaries = {3, 6}, .values = {1, 0.5, 0.1}});
  EXPECT_EQ(pieces(3), 1);
  EXPECT_EQ(pieces(4), 0.5);
  EXPECT_EQ(pieces(7), 0.1);
}

TEST(Schedules, RefuseNumbersThatAreNone) {
  EXPECT_THROW(schedules::ExponentialDecay({.decay_steps = 0}), InvalidArgument);
  EXPECT_THROW(schedules::CosineDecay({.initial = -1}), InvalidArgument);
  EXPECT_THROW(schedules::PiecewiseConstantDecay({.boundaries = {3}, .values = {1}}), InvalidArgument);
  EXPECT_THROW(callbacks::LearningRate({}), InvalidArgument);
}

TEST(Schedules, SetTheRateOfEachStep) {
  Sequential model({layers::Dense(1, {.input_shape = {1}})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Dataset data = Dataset::from_tensors(ones({6, 1}), ones({6, 1})).batch(1);
  const Schedule halves = schedules::ExponentialDecay({.initial = 1, .decay_steps = 1, .decay_rate = 0.5});
  model.fit(data, {.verbose = 0, .callbacks = {callbacks::LearningRate(halves)}});
  EXPECT_DOUBLE_EQ(model.optimizer().learning_rate(), 1.0 / 64);
}

}  // namespace
}  // namespace plimsoll
