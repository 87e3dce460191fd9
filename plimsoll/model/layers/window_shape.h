// The number of outputs of windows over an axis, by Keras' rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/model/layers/layer.h"
#include "plimsoll/ops/convolution_size.h"

namespace plimsoll::internal {

struct WindowSteps {
  std::int64_t size = 1, stride = 1, dilation = 1;
};

// Throws InvalidArgument for sizes and strides below 1 and for an unknown padding.
void check_window(const char* where, SpatialSize size, SpatialSize strides, const std::string& padding, bool causal);
// -1 for an unknown size. Throws InvalidArgument for a window that is larger than the axis.
std::int64_t window_outputs(const LayerBase& layer, std::int64_t size, const WindowSteps& window,
                            std::string_view padding);
std::int64_t transposed_size(std::int64_t size, std::int64_t window, std::int64_t stride, std::string_view padding);

}  // namespace plimsoll::internal
