// A convolution of sequences, images or volumes, whose operands are in our order of axes.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/model/onnx/onnx_window.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

struct OnnxConvolution {
  std::vector<std::int64_t> stride, dilation;  // For each of one to three axes.
  std::int64_t groups = 1;
  std::vector<std::int64_t> around = {};  // Zeros before and after each axis, of sequences and images; else none.
};

// x [batch, places ..., channels], filter [places ..., channels / groups, channels out].
Tensor convolve_places(const Tensor& x, const Tensor& filter, const OnnxConvolution& options);

// The convolution of a Conv node, or of one with the same attributes: x and filter as ONNX has them, of this dtype.
OnnxValue convolve_node(const OnnxNode& node, const OnnxValue& x, const OnnxValue& filter, const Tensor& bias);

}  // namespace plimsoll::internal
