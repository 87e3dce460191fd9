// Learning rates that change from step to step.
//
//   model.fit(train, {.callbacks = {callbacks::LearningRate(schedules::ExponentialDecay({.initial = 1e-2,
//                                                                                        .decay_steps = 1000}))}});
//
// A schedule returns the rate of a step by its number, from 0: that of the optimizer, so a second fit continues where
// the first ended. Keras' formulas. Throws InvalidArgument for steps below 1 and rates that are negative or not finite.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/training/callback.h"

namespace plimsoll {

using Schedule = std::function<double(std::int64_t step)>;

namespace schedules {

struct ExponentialDecayOptions {
  double initial = 1e-3;
  std::int64_t decay_steps = 1000;
  double decay_rate = 0.96;  // The fraction left after decay_steps.
  bool staircase = false;    // In whole decay_steps only.
};
struct CosineDecayOptions {
  double initial = 1e-3;
  std::int64_t decay_steps = 1000;
  double alpha = 0;               // The smallest rate, as a fraction of the first.
  std::int64_t warmup_steps = 0;  // Before it, rising from 0 to the first rate.
};
struct PiecewiseConstantOptions {
  std::vector<std::int64_t> boundaries = {};  // Steps up to and including the first boundary have the first value.
  std::vector<double> values = {};            // One more than there are boundaries.
};

PLIMSOLL_API Schedule ExponentialDecay(const ExponentialDecayOptions& options);
PLIMSOLL_API Schedule CosineDecay(const CosineDecayOptions& options);
PLIMSOLL_API Schedule PiecewiseConstantDecay(const PiecewiseConstantOptions& options);

}  // namespace schedules

// Also without the namespace, as in earlier versions.
using schedules::CosineDecayOptions;
using schedules::ExponentialDecayOptions;
using schedules::PiecewiseConstantOptions;

namespace callbacks {
PLIMSOLL_API Callback LearningRate(Schedule schedule);
}  // namespace callbacks

}  // namespace plimsoll
