// What an optimizer refuses: options that make no sense, and steps that would change nothing.
//
//   check_optimizer(Adam{.learning_rate = -1});  // InvalidArgument: learning_rate is -1; ...
#pragma once

#include <span>

#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

void check_optimizer(const OptimizerOptions& options);
void require(bool holds, const char* what, double value, const char* wanted);  // Or InvalidArgument.
void require_factor(const char* what, double value);                           // Finite, and 0 or more.

// Refuses a step in which no trainable parameter has a gradient; when some have none, logs which, once each.
void require_gradients(const char* where, std::span<const Variable> parameters, std::span<const Tensor> gradients);

}  // namespace plimsoll::internal
