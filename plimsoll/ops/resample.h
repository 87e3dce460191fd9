// resample: one axis of a tensor at other places, as ONNX's Resize has them for each axis.
//
//   resample(x, 1, {.from = 4, .to = 8, .scale = 2, .mode = ResampleMode::linear})      // x [2, 4, 3] to [2, 8, 3]
//
// Several axes are resampled one after the other, in any order of axes; nothing is transposed. Linear, so a tape keeps
// nothing and gradients of every order are the adjoint and itself again. Nearest elements of every dtype, others of f32
// and f64. Throws InvalidArgument for an axis of another size, one without elements, or a scale that is not positive.
#pragma once

#include "plimsoll/kernels/resample.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor resample(const Tensor& x, std::size_t axis, const ResampleRule& rule);

}  // namespace plimsoll::internal
