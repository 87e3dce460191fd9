// The gradient of a normalization's gradient, for any grouping of elements that share a mean: rows, channels or groups.
//
// A normalization's gradient is dx = rstd P(dy gamma), dgamma = sum(dy n), dbeta = sum(dy) with n = (x - mean) rstd and
// P(u) = u - mean(u) - n mean(u n). This is the gradient of those three, in terms of operations.
#pragma once

#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// The layout of elements: x as `grid`, averaged over the axes `shared`, which gives `moments` (with axes of size 1);
// gamma as `parameters`, which are sums over the axes `repeated`.
struct NormGrid {
  Shape grid, moments, parameters;
  Axes shared, repeated;
};

// The operands of the gradient. gamma may be an empty handle: 1.
struct NormOperands {
  Tensor x, dy, mean, rstd, gamma;
};

// Gradients of the gradient's results, empty where nothing used them.
struct NormUpstream {
  Tensor dx, dgamma, dbeta;
};

struct NormSecondOrder {
  Tensor x, dy, gamma;  // gamma: empty when there is none or it does not matter.
};

// Results have the shapes of x, dy and gamma as they were given.
NormSecondOrder norm_second_order(const NormGrid& grid, const NormOperands& operands, const NormUpstream& upstream);

// The same as the gradient() of an op with inputs x, dy, mean, rstd and, when `has_gamma`, gamma, and outputs dx,
// dgamma and dbeta.
void give_second_order(GradientContext& context, const NormGrid& grid, bool has_gamma);

// What reaches x through the moments themselves, which second derivatives read; either of the two may be empty.
Tensor moments_gradient(const NormGrid& grid, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                        const Tensor& dmean, const Tensor& drstd);

}  // namespace plimsoll::internal
