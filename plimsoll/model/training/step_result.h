// StepResult: what a step of training or testing measured.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/model/training/metrics.h"

namespace plimsoll {

struct StepResult {
  double loss = 0;                                 // With regularization.
  std::vector<double> losses;                      // Of each output.
  std::vector<std::vector<Metric::Sums>> metrics;  // Of each output.
  std::size_t examples = 0;
};

}  // namespace plimsoll
