// Convolutions of images and sequences, channels last, with strides, dilations, padding and groups.
//
//   conv2d(x, filter, {.strides = {2, 2}, .padding = "same"})   // x [8, 32, 32, 3], filter [3, 3, 3, 16]
//   conv2d(x, filter, {.groups = 4})                            // filter [3, 3, channels / 4, 16]
//   depthwise_conv2d(x, filter)                                 // filter [3, 3, channels, multiplier]
//   conv2d_transpose(y, filter, {.strides = 2})                 // filter [3, 3, channels out, channels in]
//   conv1d(x, filter, {.padding = "causal"})                    // x [8, 100, 3], filter [5, 3, 16]: [8, 100, 16]
//   conv2d_bias_activation(x, filter, bias, "relu")             // same bits as relu(conv2d(x, filter) + bias)
//
// Padding as in TensorFlow: "valid" (none), "same" (inputs / stride outputs, rounded up; the odd element at the end);
// conv1d also "causal": outputs see no later inputs. Gradients of every order, because a convolution's gradients are
// convolutions; only the inputs that a requested gradient reads are saved, and for the result of a fused relu one bit
// per element.
// Takes floats; f16 and bf16 are computed in f32 and rounded once. Our own kernels, no library.
// Throws InvalidArgument, with both shapes, for ranks, channels and groups that do not match, windows larger than the
// image, strides and dilations below 1, and unknown words.
// Cost: up to about 2 MiB of workspace besides the reordered filter; results do not depend on the number of threads.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/convolution_size.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct ConvOptions {
  SpatialSize strides = 1;
  std::string padding = "valid";  // Or "same".
  SpatialSize dilations = 1;
  std::int64_t groups = 1;  // Output channels of a group see the input channels of that group.
  // Instead of a word: zeros above, below, left and right. Not for conv2d_transpose.
  std::optional<std::array<std::int64_t, 4>> around = {};
};

struct Conv1dOptions {
  std::int64_t strides = 1;
  std::string padding = "valid";  // Or "same", "causal".
  std::int64_t dilations = 1;
  std::int64_t groups = 1;
};

struct DepthwiseOptions {
  SpatialSize strides = 1;
  std::string padding = "valid";
  SpatialSize dilations = 1;
};

PLIMSOLL_API Tensor conv1d(const Tensor& x, const Tensor& filter, const Conv1dOptions& options = {});
PLIMSOLL_API Tensor conv2d(const Tensor& x, const Tensor& filter, const ConvOptions& options = {});
PLIMSOLL_API Tensor depthwise_conv2d(const Tensor& x, const Tensor& filter, const DepthwiseOptions& options = {});

// The gradient of conv2d: inputs * stride rows and columns, with "valid" plus the part of the window that reaches
// beyond.
PLIMSOLL_API Tensor conv2d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options = {});

// `bias` is [channels out]; the activation "linear", "relu", "sigmoid" or "tanh".
PLIMSOLL_API Tensor conv2d_bias_activation(const Tensor& x, const Tensor& filter, const Tensor& bias,
                                           std::string_view activation = "linear", const ConvOptions& options = {});

}  // namespace plimsoll
