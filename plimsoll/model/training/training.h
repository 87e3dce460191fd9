// Training: what compile() set for a model, the plans of its steps, and the request to stop a fit.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/distributed/job.h"
#include "plimsoll/model/training/losses.h"
#include "plimsoll/model/training/metrics.h"
#include "plimsoll/model/training/optimizer_spread.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

struct Training {
  explicit Training(Network& network) : plans(network) {}

  std::optional<Optimizer> optimizer;
  std::vector<Loss> losses;                  // One for each output.
  std::vector<double> loss_weights;          // The same.
  std::vector<std::vector<Metric>> metrics;  // For each output.
  std::vector<Metric> given_metrics;         // As compile() got them.
  GradientClipping clipping;
  bool run_eagerly = false;
  std::atomic<bool> stop{false};
  distributed::Job* job = nullptr;                // That trains the model now, or has the optimizer's state.
  std::shared_ptr<const OptimizerSpread> spread;  // Where that state is; unset: here.
  StepPlans plans;
  const Budget* saving =
      nullptr;  // While a fit runs: what saving the model copies out of its spill file is charged here.

  bool is_compiled() const noexcept { return optimizer.has_value(); }
};

}  // namespace plimsoll::internal
