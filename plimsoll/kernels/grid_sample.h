// Images and volumes sampled at points that a tensor names; and the gradients of both.
//
//   grid_sample({.mode = ResampleMode::linear}, x, grid, y);     // x [2, 5, 6, 3], grid [2, 4, 4, 2], y [2, 4, 4, 3]
//   grid_sample_gradient(rule, x, grid, dy, {dx, dgrid});
//
// x [batch, places ..., channels] with one to three axes of places; the last axis of the grid has as many coordinates,
// from -1 to 1, the last axis of x first, as PyTorch and ONNX have them. Points that are not finite read zeros.
// Requires f32 or f64, one dtype, views that do not overlap. Thread safety: any thread. No allocation, never throws;
// results do not depend on the number of threads.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/resample.h"

namespace plimsoll::internal {

enum class GridPadding : unsigned char { zeros, border, reflection };

struct GridRule {
  ResampleMode mode = ResampleMode::linear;  // Nearest: even ones of two as near.
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;  // -1 and 1 are the centers of the outermost places, not their edges.
  bool operator==(const GridRule&) const = default;
};

struct GridGradients {
  TensorView x, grid;
};

PLIMSOLL_API void grid_sample(const GridRule& rule, const ConstTensorView& x, const ConstTensorView& grid,
                              const TensorView& y) noexcept;
// Sets both. The gradient of a grid of nearest places is zero.
PLIMSOLL_API void grid_sample_gradient(const GridRule& rule, const ConstTensorView& x, const ConstTensorView& grid,
                                       const ConstTensorView& dy, const GridGradients& out) noexcept;

}  // namespace plimsoll::internal
