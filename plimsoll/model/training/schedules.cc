#include "plimsoll/model/training/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/model/model.h"

namespace plimsoll {
namespace {

void require_rate(double rate) {
  if (!(rate >= 0 && std::isfinite(rate)))
    throw InvalidArgument(fmt::format("schedule: a rate of {}; give finite numbers of 0 or more", rate));
}
void require_steps(std::int64_t steps) {
  if (steps < 1) throw InvalidArgument(fmt::format("schedule: {} steps; give 1 or more", steps));
}

class RateCallback final : public CallbackBase {
 public:
  explicit RateCallback(Schedule schedule) : schedule_(std::move(schedule)) {}
  void on_train_begin(Model& model) override { set(model); }
  void on_batch_end(Model& model, std::size_t, const Logs&) override { set(model); }

 private:
  void set(const Model& model) const {
    const Optimizer& optimizer = model.optimizer();
    optimizer.set_learning_rate(schedule_(optimizer.step()));
  }
  const Schedule schedule_;
};

}  // namespace

namespace schedules {

Schedule ExponentialDecay(const ExponentialDecayOptions& options) {
  require_rate(options.initial);
  require_rate(options.decay_rate);
  require_steps(options.decay_steps);
  return [options](std::int64_t step) {
    const double share = static_cast<double>(step) / static_cast<double>(options.decay_steps);
    return options.initial * std::pow(options.decay_rate, options.staircase ? std::floor(share) : share);
  };
}

Schedule CosineDecay(const CosineDecayOptions& options) {
  require_rate(options.initial);
  require_rate(options.alpha);
  require_steps(options.decay_steps);
  return [options](std::int64_t step) {
    if (step < options.warmup_steps)
      return options.initial * static_cast<double>(step) / static_cast<double>(options.warmup_steps);
    const double share = static_cast<double>(std::min(step - options.warmup_steps, options.decay_steps)) /
                         static_cast<double>(options.decay_steps);
    const double fall = 0.5 * (1 + std::cos(3.14159265358979323846 * share));
    return options.initial * ((1 - options.alpha) * fall + options.alpha);
  };
}

Schedule PiecewiseConstantDecay(const PiecewiseConstantOptions& options) {
  if (options.values.size() != options.boundaries.size() + 1 ||
      !std::is_sorted(options.boundaries.begin(), options.boundaries.end()))
    throw InvalidArgument(fmt::format("schedule: {} values for {} boundaries; give one more, and boundaries in order",
                                      options.values.size(), options.boundaries.size()));
  for (const double value : options.values) require_rate(value);
  return [options](std::int64_t step) {
    const auto after = std::lower_bound(options.boundaries.begin(), options.boundaries.end(), step);
    return options.values[static_cast<std::size_t>(after - options.boundaries.begin())];
  };
}

}  // namespace schedules

namespace callbacks {
Callback LearningRate(Schedule schedule) {
  if (!schedule) throw InvalidArgument("LearningRate: the schedule is empty; give one");
  return make_callback<RateCallback>(std::move(schedule));
}
}  // namespace callbacks

}  // namespace plimsoll
