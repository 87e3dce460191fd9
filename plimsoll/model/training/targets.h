// Targets, labels and weights as losses and metrics want them, as Keras takes them.
#pragma once

#include <string_view>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Of the predictions' dtype and shape: [batch] stands for [batch, 1]. They throw InvalidArgument with both shapes.
Tensor fit_targets(const Tensor& targets, const Tensor& predictions, std::string_view where);
// i32 or i64 of the predictions' shape without the last axis: [batch, 1] stands for [batch].
Tensor fit_labels(const Tensor& labels, const Tensor& predictions, std::string_view where);
// f32, to be multiplied with what has a number for each example (and step): [batch] goes with [batch, time].
Tensor fit_weights(const Tensor& weights, const Shape& losses, std::string_view where);

}  // namespace plimsoll::internal
