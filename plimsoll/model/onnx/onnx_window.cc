#include "plimsoll/model/onnx/onnx_window.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;  // Of strides, dilations, padding.

std::vector<std::int64_t> checked(const OnnxNode& node, const char* name, std::size_t count, std::int64_t missing,
                                  std::int64_t least) {
  std::vector<std::int64_t> values = node.integers(name, std::vector<std::int64_t>(count, missing));
  if (values.empty()) values.assign(count, missing);
  if (values.size() != count)
    node.invalid(fmt::format("{} has {} numbers, {} are expected", name, values.size(), count));
  for (const std::int64_t value : values)
    if (value < least || value > kMost) node.invalid(fmt::format("{} has a {}", name, value));
  return values;
}

}  // namespace

std::vector<std::int64_t> spatial_sizes(const Shape& shape) {
  return {shape.begin() + std::min<std::size_t>(2, shape.rank()), shape.end()};
}

bool OnnxWindow::is_dilated() const {
  return std::any_of(dilation.begin(), dilation.end(), [](std::int64_t d) { return d != 1; });
}

bool OnnxWindow::is_padded(const std::vector<std::int64_t>& lengths) const {
  for (std::size_t i = 0; i < rank(); ++i)
    if (before[i] != 0 || needed_after(i, lengths[i]) > 0) return true;
  return false;
}

OnnxWindow OnnxWindow::of(const OnnxNode& node, const std::vector<std::int64_t>& size,
                          const std::vector<std::int64_t>& lengths) {
  OnnxWindow window;
  const std::size_t count = lengths.size();
  window.size = size;
  if (size.size() != count) node.invalid(fmt::format("a window of {} axes for {}", size.size(), count));
  for (const std::int64_t taps : size)
    if (taps < 1 || taps > kMost) node.invalid(fmt::format("a window of {} elements", taps));
  window.stride = checked(node, "strides", count, 1, 1);
  window.dilation = checked(node, "dilations", count, 1, 1);
  const std::vector<std::int64_t> pads = checked(node, "pads", 2 * count, 0, 0);
  const std::string automatic = node.text("auto_pad", "NOTSET");
  const bool ceil = node.integer("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t before = pads[i], after = pads[i + count];
    if (automatic == "VALID") before = after = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t wanted = (lengths[i] + window.stride[i] - 1) / window.stride[i];
      const std::int64_t total =
          std::max<std::int64_t>(0, (wanted - 1) * window.stride[i] + window.reach(i) - lengths[i]);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    const std::int64_t room = lengths[i] + before + after - window.reach(i);
    if (room < 0)
      node.invalid(fmt::format("a window of {} is larger than {} with padding", window.reach(i), lengths[i]));
    std::int64_t positions = (room + (ceil ? window.stride[i] - 1 : 0)) / window.stride[i] + 1;
    if (ceil && (positions - 1) * window.stride[i] >= lengths[i] + before)
      --positions;  // It would begin in the padding.
    window.before.push_back(before);
    window.after.push_back(after);
    window.positions.push_back(positions);
  }
  return window;
}

}  // namespace plimsoll::internal
