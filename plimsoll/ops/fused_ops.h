// Ops that each replace several others, for graph planners: intermediate results are never written.
//
//   convolution_with(*conv2d, true, Activation::relu)   // inputs x, filter, bias: relu(conv2d(x, filter) + bias)
//   dense_with(Activation::gelu)                        // inputs x, w, bias: gelu(x w + bias)
//   attention_of(0.125, true)                           // inputs q, k, v, mask: softmax(0.125 q k^T + mask) v
//   convolution_with_norm(*conv2d, *batch_norm)         // inputs x, filter, mean, variance, gamma, beta
//
// The first two give the same bits as their parts. The others sum in another order, so they agree to rounding; and a
// row of attention that may attend to nothing is zero instead of NaN. They have no gradients: those are derived before
// anything is fused.
#pragma once

#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// `convolution` comes from conv1d, conv2d or depthwise_conv2d, without bias and activation; otherwise returns nullptr.
PLIMSOLL_API std::unique_ptr<Op> convolution_with(const Op& convolution, bool has_bias, Activation activation);

// With or without a bias. Unlike dense(), takes activations whose gradient reads their input, and keeps nothing for
// one.
PLIMSOLL_API std::unique_ptr<Op> dense_with(Activation activation);

// With a batch norm whose moments are given: in each run its scale is folded into the filter, the rest into a bias.
// nullptr for other ops. The inputs are those of the convolution, then those of the norm without x.
PLIMSOLL_API std::unique_ptr<Op> convolution_with_norm(const Op& convolution, const Op& norm);

// q [batch, heads, queries, depth], k and v likewise; the mask is [batch or 1, heads or 1, queries or 1, keys], added.
// Requires a scale other than 0.
PLIMSOLL_API std::unique_ptr<Op> attention_of(double scale, bool has_mask);

}  // namespace plimsoll::internal
