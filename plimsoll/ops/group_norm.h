// Group normalization, channels last: normalizes each group of channels of each item to mean 0 and variance 1, then
// scales and shifts each channel.
//
//   group_norm(x, 8, gamma, beta)             // x [4, 32, 32, 64]: 8 groups of 8 channels; gamma and beta [64]
//   group_norm(x, 64, {}, {})                 // one group per channel: instance normalization; without parameters
//
// As layer_norm(), over all positions and the channels of a group. Saves x, and a mean and a deviation per item and
// group.
// Gradients of every order. Throws InvalidArgument for fewer than two axes, groups that do not divide the channels, and
// parameters of another shape.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct GroupNormOptions {
  double epsilon = 1e-3;
};

PLIMSOLL_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& gamma, const Tensor& beta,
                               const GroupNormOptions& options = {});

}  // namespace plimsoll
