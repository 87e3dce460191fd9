// scatter_reduce: rows of x combined with updates at the indices: products, maxima, minima.
//
//   scatter_reduce(x, constant({2, 2}), updates, ScatterReduction::maximum)     // row 2: the largest of three
//
// As scatter_add(), which adds. Of every dtype; those without a kernel are computed in a wider one. Gradients of maxima
// and minima go to the elements that were chosen, in equal parts; those of products to all factors, also beside zeros.
// Throws InvalidArgument for an index outside of x and updates of another shape.
#pragma once

#include "plimsoll/kernels/scatter_reduce.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor scatter_reduce(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterReduction reduction);

}  // namespace plimsoll::internal
