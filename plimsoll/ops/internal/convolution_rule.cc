#include "plimsoll/ops/internal/convolution_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

bool is_known(std::int64_t size) { return size != kUnknownSize; }

Shape with_spatial(std::size_t axes, std::int64_t batch, SpatialSize size, std::int64_t channels) {
  return axes == 1 ? Shape{batch, size.columns, channels} : Shape{batch, size.rows, size.columns, channels};
}

}  // namespace

PaddingRule padding_rule(const std::string& word, const char* where, bool may_be_causal) {
  if (word == "valid" || word == "VALID") return PaddingRule::valid;
  if (word == "same" || word == "SAME") return PaddingRule::same;
  if (word == "causal" && may_be_causal) return PaddingRule::causal;
  throw InvalidArgument(fmt::format("{}: padding is \"{}\"; give \"valid\"{} \"same\"{}", where, word,
                                    may_be_causal ? "," : " or", may_be_causal ? " or \"causal\"" : ""));
}

void require_positive(const SpatialSize& size, const char* what, const char* where) {
  constexpr std::int64_t kMost = 1 << 24;
  if (size.rows < 1 || size.columns < 1)
    throw InvalidArgument(fmt::format("{}: {} are {} and {}; give 1 or more", where, what, size.rows, size.columns));
  if (size.rows > kMost || size.columns > kMost)
    throw InvalidArgument(
        fmt::format("{}: {} are {} and {}; give at most {}", where, what, size.rows, size.columns, kMost));
}

Margins margins(PaddingRule padding, std::int64_t size, std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t reach = (taps - 1) * dilation + 1;
  if (padding == PaddingRule::valid || size == 0) return {};
  if (padding == PaddingRule::causal) return {reach - 1, 0};
  const std::int64_t outputs = divide_up(size, stride);
  const std::int64_t all = std::max<std::int64_t>(0, (outputs - 1) * stride + reach - size);
  return {all / 2, all - all / 2};
}

std::int64_t window_positions(PaddingRule padding, std::int64_t size, std::int64_t taps, std::int64_t stride,
                              std::int64_t dilation) {
  if (!is_known(size) || !is_known(taps)) return kUnknownSize;
  if (padding == PaddingRule::same) return divide_up(size, stride);
  const Margins around = margins(padding, size, taps, stride, dilation);
  return Window::positions(size, taps, stride, dilation, around.before, around.after);
}

Shape with_batch(const Shape& shape, const Shape& of) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes[0] = of[0];
  return Shape(sizes);
}

Shape ConvolutionRule::image(const Shape& shape) const {
  return axes == 1 ? Shape{shape[0], 1, shape[1], shape[2]} : shape;
}

Shape ConvolutionRule::window(const Shape& filter) const {
  return axes == 1 ? Shape{1, filter[0], filter[1], filter[2]} : filter;
}

void ConvolutionRule::require_ranks(const Shape& x, const Shape& filter) const {
  const char* const image = axes == 1 ? "[batch, steps, channels]" : "[batch, rows, columns, channels]";
  if (x.rank() != axes + 2 || filter.rank() != axes + 2)
    throw InvalidArgument(fmt::format("{}: x is {}, the filter {}; give x as {} and a filter of {} axes", name,
                                      x.to_string(), filter.to_string(), image, axes + 2));
  for (std::size_t axis = 0; axis < axes; ++axis)
    if (filter[axis] == 0)
      throw InvalidArgument(fmt::format("{}: the filter {} has no taps", name, filter.to_string()));
}

void ConvolutionRule::require_channels(const Shape& x, const Shape& filter) const {
  const std::int64_t channels = x.back(), depth = filter[axes], outputs = filter[axes + 1];
  if (groups < 1) throw InvalidArgument(fmt::format("{}: groups are {}; give 1 or more", name, groups));
  if (!is_known(channels) || !is_known(depth)) return;
  if (channels != depth * groups)
    throw InvalidArgument(fmt::format("{}: x {} has {} channels, the filter {} is for {}{}", name, x.to_string(),
                                      channels, filter.to_string(), depth * groups,
                                      groups == 1 ? "" : fmt::format(" in {} groups", groups)));
  if (is_known(outputs) && outputs % groups != 0)
    throw InvalidArgument(fmt::format("{}: the filter {} has {} output channels, which {} groups do not divide", name,
                                      filter.to_string(), outputs, groups));
}

Shape ConvolutionRule::output_shape(const Shape& x, const Shape& filter) const {
  require_ranks(x, filter);
  require_channels(x, filter);
  const Shape from = image(x), taps = window(filter);
  const auto positions = [&](std::size_t axis, std::int64_t stride, std::int64_t dilation, const Margins& around) {
    const std::int64_t inputs = from[axis], tap = taps[axis - 1];
    if (padding != PaddingRule::given || !is_known(inputs) || !is_known(tap))
      return window_positions(padding, inputs, tap, stride, dilation);
    return Window::positions(inputs, tap, stride, dilation, around.before, around.after);
  };
  const SpatialSize size(positions(1, strides.rows, dilations.rows, rows),
                         positions(2, strides.columns, dilations.columns, columns));
  if ((size.rows == 0 && from[1] > 0) || (size.columns == 0 && from[2] > 0))
    throw InvalidArgument(fmt::format("{}: the filter {}{} is larger than x {}; use padding \"same\" or a larger x",
                                      name, filter.to_string(),
                                      dilations.rows * dilations.columns > 1 ? ", dilated," : "", x.to_string()));
  const bool known = is_known(taps[2]) && is_known(taps[3]);
  const std::int64_t channels = !depthwise ? taps[3] : known ? taps[2] * taps[3] : kUnknownSize;
  return with_spatial(axes, x[0], size, channels);
}

Shape ConvolutionRule::transposed_shape(const Shape& y, const Shape& filter) const {
  require_ranks(y, filter);
  const Shape from = image(y), taps = window(filter);
  if (groups < 1) throw InvalidArgument(fmt::format("{}: groups are {}; give 1 or more", name, groups));
  if (is_known(from[3]) && is_known(taps[3]) && (from[3] != taps[3] || from[3] % groups != 0))
    throw InvalidArgument(fmt::format("{}: x {} has {} channels, the filter {} is for {}{}", name, y.to_string(),
                                      from[3], filter.to_string(), taps[3],
                                      groups == 1 ? "" : fmt::format(" in {} groups", groups)));
  const auto size = [&](std::int64_t inputs, std::int64_t tap, std::int64_t stride, std::int64_t dilation) {
    if (!is_known(inputs) || !is_known(tap)) return kUnknownSize;
    const std::int64_t reach = (tap - 1) * dilation + 1;
    const std::int64_t beyond =
        padding == PaddingRule::valid && inputs > 0 ? std::max<std::int64_t>(0, reach - stride) : 0;
    return inputs * stride + beyond;
  };
  return with_spatial(axes, y[0],
                      {size(from[1], taps[0], strides.rows, dilations.rows),
                       size(from[2], taps[1], strides.columns, dilations.columns)},
                      is_known(taps[2]) ? taps[2] * groups : kUnknownSize);
}

Convolution ConvolutionRule::kernel(const Shape& x, const Shape& filter) const {
  const Shape from = image(x), taps = window(filter);
  const bool given = padding == PaddingRule::given;
  const Margins down = given ? rows : margins(padding, from[1], taps[0], strides.rows, dilations.rows);
  const Margins across = given ? columns : margins(padding, from[2], taps[1], strides.columns, dilations.columns);
  const Window moves = {strides.rows, strides.columns, dilations.rows, dilations.columns,
                        down.before,  down.after,      across.before,  across.after};
  return {moves, depthwise ? from[3] : groups, lanes};
}

}  // namespace plimsoll::internal
