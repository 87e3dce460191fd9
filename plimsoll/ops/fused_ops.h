// Ops that each stand for several others, for those who plan graphs: what is between them is never written.
//
//   convolution_with_bias(*conv2d, Activation::relu)    // inputs x, filter, bias: relu(conv2d(x, filter) + bias)
//   attention_of(0.125, true)                           // inputs q, k, v, mask: softmax(0.125 q k^T + mask) v
//   convolution_with_norm(*conv2d, *batch_norm)         // inputs x, filter, mean, variance, gamma, beta
//
// The first gives the bits of its parts. The others do the same sums in another order: they agree to rounding; and a
// row of attention that nothing may be attended from is zero instead of not a number. They have no gradients: those are
// worked out before anything is fused.
#pragma once

#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// `convolution` is of conv1d, conv2d or depthwise_conv2d, without bias and activation; else nullptr.
PLIMSOLL_API std::unique_ptr<Op> convolution_with_bias(const Op& convolution, Activation activation);

// With a batch norm that has its moments given: its scale is folded into the filter, the rest into a bias, in each
// run. nullptr for other ops. The inputs are those of the convolution, then those of the norm without x.
PLIMSOLL_API std::unique_ptr<Op> convolution_with_norm(const Op& convolution, const Op& norm);

// q [batch, heads, queries, depth], k and v alike; the mask is [batch or 1, heads or 1, queries or 1, keys], added.
// Requires a scale that is not 0.
PLIMSOLL_API std::unique_ptr<Op> attention_of(double scale, bool has_mask);

}  // namespace plimsoll::internal
