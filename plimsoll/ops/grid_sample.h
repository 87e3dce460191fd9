// grid_sample: images and volumes sampled at points that a tensor names, as PyTorch's grid_sample.
//
//   grid_sample(x, grid, {.mode = ResampleMode::linear})      // x [2, 5, 6, 3], grid [2, 4, 4, 2]: y [2, 4, 4, 3]
//
// x [batch, places ..., channels], one to three axes of places; the last axis of the grid has as many coordinates, from
// -1 to 1, the last axis of x first. No table of neighbours is made. A tape keeps x and the grid. Of f32 and f64.
// Throws InvalidArgument for shapes that do not go together. Second derivatives are Unsupported.
#pragma once

#include "plimsoll/kernels/grid_sample.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridRule& rule);

}  // namespace plimsoll::internal
