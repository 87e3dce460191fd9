// Converts targets, labels and weights to the form that losses and metrics expect, as Keras does.
#pragma once

#include <string_view>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// With the predictions' dtype and shape: [batch] stands for [batch, 1]. They throw InvalidArgument with both shapes.
Tensor fit_targets(const Tensor& targets, const Tensor& predictions, std::string_view where);
// i32 or i64 with the predictions' shape without the last axis: [batch, 1] stands for [batch].
Tensor fit_labels(const Tensor& labels, const Tensor& predictions, std::string_view where);
// f32, to be multiplied with a number per example (and step): [batch] broadcasts to [batch, time].
Tensor fit_weights(const Tensor& weights, const Shape& losses, std::string_view where);

}  // namespace plimsoll::internal
