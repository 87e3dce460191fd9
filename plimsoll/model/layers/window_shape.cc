#include "plimsoll/model/layers/window_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

void check_window(const char* where, SpatialSize size, SpatialSize strides, const std::string& padding, bool causal) {
  if (size.rows < 1 || size.columns < 1 || strides.rows < 1 || strides.columns < 1)
    throw InvalidArgument(fmt::format("{}: a window of {} x {} with strides {} x {}; give 1 or more", where, size.rows,
                                      size.columns, strides.rows, strides.columns));
  if (padding != "valid" && padding != "same" && !(causal && padding == "causal"))
    throw InvalidArgument(fmt::format("{}: padding \"{}\"; use \"valid\" or \"same\"", where, padding));
}

std::int64_t window_outputs(const LayerBase& layer, std::int64_t size, const WindowSteps& window,
                            std::string_view padding) {
  if (size == kUnknownSize) return kUnknownSize;
  const std::int64_t reach = (window.size - 1) * window.dilation + 1;
  if (padding != "valid") return (size + window.stride - 1) / window.stride;
  if (reach > size)
    throw InvalidArgument(fmt::format("{} \"{}\": a window of {} does not fit into {}; pad or use a smaller one",
                                      layer.class_name(), layer.name(), reach, size));
  return (size - reach) / window.stride + 1;
}

std::int64_t transposed_size(std::int64_t size, std::int64_t window, std::int64_t stride, std::string_view padding) {
  if (size == kUnknownSize) return kUnknownSize;
  return size * stride + (padding == "valid" ? std::max<std::int64_t>(window - stride, 0) : 0);
}

}  // namespace plimsoll::internal
