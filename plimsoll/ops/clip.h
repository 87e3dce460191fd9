// Clipping of values and of norms, as used for gradients.
//
//   clip_by_norm(x, 1.0); clip_by_norm(x, 1.0, {1})
//   auto [clipped, norm] = clip_by_global_norm(gradients, 5.0);
//
// All have gradients. A norm that is not finite makes every element NaN, so that it does not go unnoticed. Takes
// floats; clip_by_global_norm takes f32 and f64.
// Throws InvalidArgument for limits that are not above 0, and as operations do.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// TensorFlow's name for clip() (elementwise.h), which new code should use.
PLIMSOLL_API Tensor clip_by_value(const Tensor& x, double low, double high);

// x limit / max(norm(x), limit), the norm over `axes`.
PLIMSOLL_API Tensor clip_by_norm(const Tensor& x, double limit, const Axes& axes = {});

// The root of the sum of all squares: a scalar, in one operation. Takes tensors of one dtype; empty handles do not
// count, and without any other the norm is 0.
PLIMSOLL_API Tensor global_norm(std::span<const Tensor> tensors);

struct ClippedTensors {
  std::vector<Tensor> tensors;  // An empty handle stays empty.
  Tensor norm;                  // Before clipping.
};
PLIMSOLL_API ClippedTensors clip_by_global_norm(std::span<const Tensor> tensors, double limit);
PLIMSOLL_API ClippedTensors clip_by_global_norm(const std::vector<Tensor>& tensors, double limit);

}  // namespace plimsoll
