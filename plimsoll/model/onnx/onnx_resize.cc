// Resize and Upsample: one axis after the other, by an index for each new place or a matrix of weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

// How one axis changes.
struct ResizedAxis {
  std::int64_t from = 0, to = 0;
  double scale = 1, begin = 0, end = 1;  // begin and end: of the part that is cropped.
};

struct Manner {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool excludes_outside = false;
};

double coordinate(const OnnxNode& node, const Manner& manner, const ResizedAxis& axis, std::int64_t place) {
  const double at = static_cast<double>(place), from = static_cast<double>(axis.from),
               to = static_cast<double>(axis.to);
  const std::string& kind = manner.coordinates;
  if (kind == "half_pixel") return (at + 0.5) / axis.scale - 0.5;
  if (kind == "pytorch_half_pixel") return axis.to > 1 ? (at + 0.5) / axis.scale - 0.5 : 0;
  if (kind == "align_corners") return axis.to > 1 ? at * (from - 1) / (axis.scale * from - 1) : 0;
  if (kind == "asymmetric") return at / axis.scale;
  if (kind == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (kind == "half_pixel_symmetric") {
    const double adjusted = to / (axis.scale * from);
    return from / 2 * (1 - adjusted) + (at + 0.5) / axis.scale - 0.5;
  }
  if (kind == "tf_crop_and_resize")
    return axis.to > 1 ? axis.begin * (from - 1) + at * (axis.end - axis.begin) * (from - 1) / (to - 1)
                       : 0.5 * (axis.begin + axis.end) * (from - 1);
  node.unsupported(fmt::format("coordinate_transformation_mode \"{}\"", kind));
}

std::int64_t nearest_place(const OnnxNode& node, const Manner& manner, double x, std::int64_t size) {
  double place = 0;
  if (manner.nearest == "round_prefer_floor")
    place = std::ceil(x - 0.5);
  else if (manner.nearest == "round_prefer_ceil")
    place = std::floor(x + 0.5);
  else if (manner.nearest == "floor")
    place = std::floor(x);
  else if (manner.nearest == "ceil")
    place = std::ceil(x);
  else
    node.unsupported(fmt::format("nearest_mode \"{}\"", manner.nearest));
  return static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(size - 1)));
}

std::array<double, 4> cubic_weights(double t, double a) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + t), near(t), near(1 - t), far(2 - t)};
}

// [to, from]: what each new place is made of.
Tensor weights_of(const OnnxNode& node, const Manner& manner, const ResizedAxis& axis, DType dtype) {
  std::vector<float> weights(static_cast<std::size_t>(axis.from * axis.to), 0.f);
  const bool cubic = manner.mode == "cubic";
  for (std::int64_t place = 0; place < axis.to; ++place) {
    const double x = coordinate(node, manner, axis, place), floor = std::floor(x), t = x - floor;
    std::array<double, 4> parts = cubic ? cubic_weights(t, manner.cubic) : std::array<double, 4>{0, 1 - t, t, 0};
    const auto first = static_cast<std::int64_t>(floor) - 1;
    double total = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      const bool inside = first + i >= 0 && first + i < axis.from;
      if (manner.excludes_outside && !inside) parts[static_cast<std::size_t>(i)] = 0;
      total += parts[static_cast<std::size_t>(i)];
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t at = std::clamp<std::int64_t>(first + i, 0, axis.from - 1);
      const double part = parts[static_cast<std::size_t>(i)] / (manner.excludes_outside && total != 0 ? total : 1);
      weights[static_cast<std::size_t>(place * axis.from + at)] += static_cast<float>(part);
    }
  }
  const TraceWith nobody(nullptr);
  return from_vector(weights, {axis.to, axis.from}).cast(dtype);
}

Tensor resized(const OnnxNode& node, const Manner& manner, const Tensor& x, std::size_t at, const ResizedAxis& axis) {
  const auto along = static_cast<std::int64_t>(at);
  if (axis.to == 0 || axis.from == 0 || axis.from * axis.to > std::int64_t{1} << 28)
    node.unsupported(fmt::format("an axis from {} to {}", axis.from, axis.to));
  Tensor y;
  if (manner.mode == "nearest") {
    Integers places;
    for (std::int64_t place = 0; place < axis.to; ++place)
      places.push_back(nearest_place(node, manner, coordinate(node, manner, axis, place), axis.from));
    Tensor indices;
    {
      const TraceWith nobody(nullptr);
      indices = from_vector(places, {axis.to});
    }
    y = gather(x, indices, along);
  } else {
    // The axis last, times the weights, and back.
    AxisOrder order;
    for (std::size_t i = 0; i < x.rank(); ++i)
      if (i != at) order.push_back(static_cast<std::int64_t>(i));
    order.push_back(along);
    const Tensor last = transpose(x, order);
    y = transpose(matmul(last, weights_of(node, manner, axis, x.dtype()), {.transpose_b = true}), inverse(order));
  }
  if (manner.coordinates != "tf_crop_and_resize") return y;
  std::vector<float> inside;
  for (std::int64_t place = 0; place < axis.to; ++place) {
    const double from = coordinate(node, manner, axis, place);
    inside.push_back(from >= 0 && from <= static_cast<double>(axis.from - 1) ? 1.f : 0.f);
  }
  Integers beside(x.rank(), 1);
  beside[at] = axis.to;
  const Tensor mask = from_vector(inside, Shape(beside)) > 0;
  return where(mask, y, full(Shape::scalar(), manner.outside, y.dtype()));
}

void resize_by(OnnxNode& node, const Manner& manner, const std::vector<ResizedAxis>& axes) {
  const Tensor& given = node.in(0);
  const bool casts = manner.mode != "nearest" && !is_floating(given.dtype());
  Tensor x = casts ? given.cast(f32) : given;
  if (manner.mode != "nearest" && manner.mode != "linear" && manner.mode != "cubic")
    node.unsupported(fmt::format("the mode \"{}\"", manner.mode));
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis].from != axes[axis].to || axes[axis].scale != 1 || manner.coordinates == "tf_crop_and_resize")
      x = resized(node, manner, x, axis, axes[axis]);
  node.give(casts ? x.cast(given.dtype()) : x);
}

std::vector<ResizedAxis> scaled(const OnnxNode& node, const Shape& shape, const std::vector<double>& scales,
                                const std::vector<std::size_t>& which) {
  std::vector<ResizedAxis> axes;
  for (const std::int64_t size : shape) axes.push_back({size, size});
  if (scales.size() != which.size()) node.invalid(fmt::format("{} scales for {} axes", scales.size(), which.size()));
  for (std::size_t i = 0; i < which.size(); ++i) {
    ResizedAxis& axis = axes[which[i]];
    if (!(scales[i] > 0 && scales[i] < 1e6)) node.invalid(fmt::format("a scale of {}", scales[i]));
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
  const std::string mode = node.text("mode", "nearest");
  const Manner manner{.mode = mode == "bilinear" ? "linear" : mode, .coordinates = "asymmetric", .nearest = "floor"};
  resize_by(node, manner, scaled(node, node.shape(0), scales, all_axes(node.rank(0))));
}

void resize(OnnxNode& node) {
  const Shape shape = node.shape(0);
  if (node.integer("antialias", 0) != 0) node.unsupported("antialias");
  Manner manner{.mode = node.text("mode", "nearest"),
                .coordinates = node.text("coordinate_transformation_mode", "half_pixel"),
                .nearest = node.text("nearest_mode", "round_prefer_floor"),
                .cubic = node.real("cubic_coeff_a", -0.75),
                .outside = node.real("extrapolation_value", 0),
                .excludes_outside = node.integer("exclude_outside", 0) != 0};
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
  if (manner.coordinates == "tf_crop_and_resize") {
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
