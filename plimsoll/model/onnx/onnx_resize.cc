// Resize and Upsample: one axis after the other, whatever order they are held in.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/resample.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

ResampleMode mode_of(const OnnxNode& node, const std::string& mode) {
  if (mode == "nearest") return ResampleMode::nearest;
  if (mode == "linear" || mode == "bilinear") return ResampleMode::linear;
  if (mode == "cubic") return ResampleMode::cubic;
  node.unsupported(fmt::format("the mode \"{}\"", mode));
}

ResamplePlace place_of(const OnnxNode& node, const std::string& kind) {
  static const std::pair<const char*, ResamplePlace> kKinds[] = {
      {"half_pixel", ResamplePlace::half_pixel},
      {"pytorch_half_pixel", ResamplePlace::pytorch_half_pixel},
      {"half_pixel_symmetric", ResamplePlace::half_pixel_symmetric},
      {"align_corners", ResamplePlace::align_corners},
      {"asymmetric", ResamplePlace::asymmetric},
      {"tf_half_pixel_for_nn", ResamplePlace::tf_half_pixel_for_nn},
      {"tf_crop_and_resize", ResamplePlace::tf_crop_and_resize},
  };
  for (const auto& [name, place] : kKinds)
    if (kind == name) return place;
  node.unsupported(fmt::format("coordinate_transformation_mode \"{}\"", kind));
}

ResampleRound round_of(const OnnxNode& node, const std::string& kind) {
  if (kind == "round_prefer_floor") return ResampleRound::prefer_floor;
  if (kind == "round_prefer_ceil") return ResampleRound::prefer_ceil;
  if (kind == "floor") return ResampleRound::floor;
  if (kind == "ceil") return ResampleRound::ceil;
  node.unsupported(fmt::format("nearest_mode \"{}\"", kind));
}

// How one axis changes.
struct ResizedAxis {
  std::int64_t from = 0, to = 0;
  double scale = 1, begin = 0, end = 1;  // begin and end: of the part that is cropped.
};

// Axis by axis, in the order in which the value is held; those that shrink come first.
void resize_by(OnnxNode& node, const ResampleRule& manner, const std::vector<ResizedAxis>& axes) {
  const OnnxValue& given = node.value(0);
  const DType dtype = given.held().dtype();
  const bool crops = manner.place == ResamplePlace::tf_crop_and_resize;
  Tensor x = given.held();
  if (manner.mode != ResampleMode::nearest && dtype != f64) x = x.cast(f32);
  std::vector<std::size_t> changed;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].from != axes[axis].to || axes[axis].scale != 1 || crops) changed.push_back(axis);
  std::stable_sort(changed.begin(), changed.end(),
                   [&](std::size_t a, std::size_t b) { return axes[a].scale < axes[b].scale; });
  for (const std::size_t axis : changed) {
    ResampleRule rule = manner;
    rule.from = axes[axis].from, rule.to = axes[axis].to, rule.scale = axes[axis].scale;
    rule.begin = axes[axis].begin, rule.end = axes[axis].end;
    const AxisOrder& order = given.order();
    const auto held = std::find(order.begin(), order.end(), static_cast<std::int64_t>(axis)) - order.begin();
    x = resample(x, order.empty() ? axis : static_cast<std::size_t>(held), rule);
  }
  node.give(OnnxValue(x.cast(dtype), given.order()));
}

std::vector<ResizedAxis> scaled(const OnnxNode& node, const Shape& shape, const std::vector<double>& scales,
                                const std::vector<std::size_t>& which) {
  std::vector<ResizedAxis> axes;
  for (const std::int64_t size : shape) axes.push_back({size, size});
  if (scales.size() != which.size()) node.invalid(fmt::format("{} scales for {} axes", scales.size(), which.size()));
  for (std::size_t i = 0; i < which.size(); ++i) {
    ResizedAxis& axis = axes[which[i]];
    if (!(scales[i] > 1e-9 && scales[i] < 1e6)) node.invalid(fmt::format("a scale of {}", scales[i]));
    axis.scale = scales[i];
    axis.to = static_cast<std::int64_t>(std::floor(static_cast<double>(axis.from) * scales[i]));
  }
  return axes;
}

std::vector<std::size_t> all_axes(std::size_t rank) {
  std::vector<std::size_t> axes(rank);
  for (std::size_t axis = 0; axis < rank; ++axis) axes[axis] = axis;
  return axes;
}

// Before version 11: scales alone.
void resize_early(OnnxNode& node) {
  const bool operand = node.version() >= 9;
  const std::vector<double> scales = operand ? node.reals(std::size_t{1}) : node.reals("scales");
  const ResampleRule manner{.mode = mode_of(node, node.text("mode", "nearest")),
                            .place = ResamplePlace::asymmetric,
                            .round = ResampleRound::floor};
  resize_by(node, manner, scaled(node, node.shape(0), scales, all_axes(node.rank(0))));
}

void resize(OnnxNode& node) {
  const Shape shape = node.shape(0);
  const ResampleRule manner{.mode = mode_of(node, node.text("mode", "nearest")),
                            .place = place_of(node, node.text("coordinate_transformation_mode", "half_pixel")),
                            .round = round_of(node, node.text("nearest_mode", "round_prefer_floor")),
                            .excludes_outside = node.integer("exclude_outside", 0) != 0,
                            .antialias = node.integer("antialias", 0) != 0,
                            .cubic = node.real("cubic_coeff_a", -0.75),
                            .outside = node.real("extrapolation_value", 0)};
  std::vector<std::size_t> which = all_axes(shape.rank());
  if (node.find("axes")) {
    which.clear();
    for (const std::int64_t axis : node.integers("axes")) which.push_back(resolve_axis(axis, shape.rank(), "Resize"));
  }
  const std::vector<double> scales = node.has(2) ? node.reals(std::size_t{2}) : std::vector<double>();
  std::vector<ResizedAxis> axes;
  if (!scales.empty()) {
    axes = scaled(node, shape, scales, which);
  } else {
    for (const std::int64_t size : shape) axes.push_back({size, size});
    const Integers sizes = node.integers(std::size_t{3});
    if (sizes.size() != which.size()) node.invalid(fmt::format("{} sizes for {} axes", sizes.size(), which.size()));
    const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
    double kept = policy == "not_larger" ? 1e30 : 0;
    for (std::size_t i = 0; i < which.size(); ++i) {
      ResizedAxis& axis = axes[which[i]];
      if (sizes[i] < 0 || sizes[i] > 1 << 30 || axis.from == 0) node.invalid(fmt::format("a size of {}", sizes[i]));
      axis.to = sizes[i];
      axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
      kept = policy == "not_larger" ? std::min(kept, axis.scale) : std::max(kept, axis.scale);
    }
    if (policy != "stretch")
      for (const std::size_t i : which) {
        axes[i].scale = kept;
        axes[i].to = static_cast<std::int64_t>(std::floor(kept * static_cast<double>(axes[i].from) + 0.5));
      }
  }
  if (manner.place == ResamplePlace::tf_crop_and_resize) {
    const std::vector<double> region = node.reals(std::size_t{1});
    if (region.size() != 2 * which.size()) node.invalid("the region does not fit the axes");
    for (std::size_t i = 0; i < which.size(); ++i)
      axes[which[i]].begin = region[i], axes[which[i]].end = region[i + which.size()];
  }
  resize_by(node, manner, axes);
}

constexpr OnnxOperator kResizeRows[] = {
    {"Resize", 10, 10, resize_early, kOperand1},
    {"Resize", 11, kNewest, resize, kOperand1 | kOperand2 | kOperand3},
    {"Upsample", 7, 8, resize_early},
    {"Upsample", 9, 9, resize_early, kOperand1},
};

}  // namespace

OnnxOperators onnx_resize_operators() { return kResizeRows; }

}  // namespace plimsoll::internal
