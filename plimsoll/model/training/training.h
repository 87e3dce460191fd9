// Training: what compile() told a model, and the state of a fit.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "plimsoll/model/training/losses.h"
#include "plimsoll/model/training/metrics.h"
#include "plimsoll/model/training/planned_step.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll {

struct GradientClipping {
  double norm = 0;         // Of each gradient.
  double value = 0;        // Of each element.
  double global_norm = 0;  // Of all together.
};

struct Training {
  std::optional<Optimizer> optimizer;
  std::vector<Loss> losses;                  // One for each output.
  std::vector<double> loss_weights;          // The same.
  std::vector<std::vector<Metric>> metrics;  // For each output.
  std::vector<Metric> given_metrics;         // As compile() got them.
  GradientClipping clipping;
  bool run_eagerly = false;
  std::atomic<bool> stop{false};
  PlannedSteps planned;

  bool is_compiled() const noexcept { return optimizer.has_value(); }
};

}  // namespace plimsoll
