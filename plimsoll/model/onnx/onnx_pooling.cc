// Pooling: maxima, averages and norms of windows, or of all places.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/model/onnx/onnx_window.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

OnnxWindow window_of(const OnnxNode& node) {
  return OnnxWindow::of(node, node.integers("kernel_shape"), spatial_sizes(node.shape(0)));
}

// Padded so that every position of the window is inside; `first` is the first spatial axis of x.
Tensor padded(const Tensor& x, const OnnxWindow& window, std::size_t first, double value) {
  Paddings paddings(x.rank(), {0, 0});
  bool any = false;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    const std::int64_t after = std::max<std::int64_t>(0, window.needed_after(i, x.shape()[first + i]));
    paddings[first + i] = {window.before[i], after};
    any = any || window.before[i] > 0 || after > 0;
  }
  return any ? pad(x, paddings, value) : x;
}

// Combines what each tap of the window sees, tap by tap: any number of axes, any dilation. x is padded.
void each_tap(
    const Tensor& x, const OnnxWindow& window, std::size_t first,
    const std::function<void(std::vector<std::int64_t>, std::vector<std::int64_t>, std::vector<std::int64_t>)>& f) {
  std::vector<std::int64_t> tap(window.rank(), 0);
  for (bool more = true; more;) {
    std::vector<std::int64_t> begin(x.rank(), kOpen), end(x.rank(), kOpen), stride(x.rank(), 1);
    for (std::size_t i = 0; i < window.rank(); ++i) {
      begin[first + i] = tap[i] * window.dilation[i];
      end[first + i] = begin[first + i] + (window.positions[i] - 1) * window.stride[i] + 1;
      stride[first + i] = window.stride[i];
    }
    f(begin, end, stride);
    more = false;
    for (std::size_t i = window.rank(); i-- > 0 && !more;) more = ++tap[i] < window.size[i] || (tap[i] = 0, false);
  }
}

void require_few_taps(const OnnxNode& node, const OnnxWindow& window) {
  double taps = 1;
  for (const std::int64_t size : window.size) taps *= static_cast<double>(size);
  if (taps > 4096) node.unsupported(fmt::format("a window of {} elements", taps));
}

// The same for combinations that can be made axis by axis: as many steps as the sizes add up to. x is padded.
template <class F>
Tensor each_axis(const OnnxNode& node, Tensor x, const OnnxWindow& window, std::size_t first, F combine) {
  for (std::size_t i = 0; i < window.rank(); ++i) {
    if (window.size[i] > 4096) node.unsupported(fmt::format("a window of {} elements", window.size[i]));
    Tensor result;
    for (std::int64_t tap = 0; tap < window.size[i]; ++tap) {
      std::vector<std::int64_t> begin(x.rank(), kOpen), end(x.rank(), kOpen), stride(x.rank(), 1);
      begin[first + i] = tap * window.dilation[i];
      end[first + i] = begin[first + i] + (window.positions[i] - 1) * window.stride[i] + 1;
      stride[first + i] = window.stride[i];
      const Tensor value = strided_slice(x, begin, end, stride);
      result = result.is_empty_handle() ? value : combine(result, value);
    }
    x = result;
  }
  return x;
}

SpatialSize pair(const std::vector<std::int64_t>& sizes) { return {sizes.size() == 1 ? 1 : sizes[0], sizes.back()}; }

// Places of the elements, as the file counts them.
Tensor places_of(const OnnxNode& node, const Shape& shape) {
  const TraceWith nobody(nullptr);
  const auto size = static_cast<std::int64_t>(shape.size());
  Tensor rows = arange(size).cast(i64).reshape(shape);
  if (node.integer("storage_order", 0) == 0) return rows;
  std::vector<std::int64_t> reversed(shape.begin(), shape.end()), order = {0, 1};
  std::reverse(reversed.begin() + 2, reversed.end());
  for (std::size_t axis = shape.rank(); axis-- > 2;) order.push_back(static_cast<std::int64_t>(axis));
  return transpose(arange(size).cast(i64).reshape(Shape(reversed)), order);
}

void max_pool_with_places(OnnxNode& node, const OnnxWindow& window) {
  require_few_taps(node, window);
  const Tensor& given = node.in(0);
  const Tensor x =
      padded(is_floating(given.dtype()) ? given : given.cast(f32), window, 2, -std::numeric_limits<double>::infinity());
  const Tensor places = padded(places_of(node, given.shape()), window, 2, 0);
  Tensor best, best_place;
  each_tap(x, window, 2, [&](const auto& begin, const auto& end, const auto& stride) {
    const Tensor value = strided_slice(x, begin, end, stride), place = strided_slice(places, begin, end, stride);
    if (best.is_empty_handle()) {
      best = value, best_place = place;
      return;
    }
    const Tensor larger = value > best;
    best = where(larger, value, best);
    best_place = where(larger, place, best_place);
  });
  node.give(0, best.cast(given.dtype()));
  node.give(1, best_place);
}

void max_pool(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  const OnnxWindow window = window_of(node);
  if (node.wants(1)) return max_pool_with_places(node, window);
  const AxisOrder order = channels_last(rank);
  const Tensor& given = node.value(0).as(order);
  const bool floats = is_floating(given.dtype());
  Tensor x = padded(floats ? given : given.cast(f32), window, 1, -std::numeric_limits<double>::infinity()), y;
  if (!window.is_dilated() && (rank == 3 || rank == 4)) {
    if (rank == 3) x = x.expand_dims(1);
    y = max_pool2d(x, pair(window.size), {.strides = pair(window.stride)});
    if (rank == 3) y = y.squeeze({1});
  } else {
    y = each_axis(node, x, window, 1, [](const Tensor& a, const Tensor& b) { return maximum(a, b); });
  }
  node.give(OnnxValue(floats ? y : y.cast(given.dtype()), order));
}

// How many elements each position of the window averages, along one axis.
std::vector<double> counts(const OnnxWindow& window, std::size_t axis, std::int64_t length, bool with_padding) {
  std::vector<double> result;
  const std::int64_t low = with_padding ? -window.before[axis] : 0;
  const std::int64_t high = length + (with_padding ? window.after[axis] : 0);
  for (std::int64_t position = 0; position < window.positions[axis]; ++position) {
    std::int64_t count = 0;
    for (std::int64_t tap = 0; tap < window.size[axis]; ++tap) {
      const std::int64_t at = position * window.stride[axis] - window.before[axis] + tap * window.dilation[axis];
      count += at >= low && at < high;
    }
    result.push_back(static_cast<double>(count));
  }
  return result;
}

// What an average over all taps, padding included, is to be multiplied with; an empty handle when it is 1.
Tensor corrections(const OnnxNode& node, const OnnxWindow& window, std::size_t rank, DType dtype) {
  const TraceWith nobody(nullptr);
  const std::vector<std::int64_t> lengths = spatial_sizes(node.shape(0));
  const bool with_padding = node.integer("count_include_pad", 0) != 0;
  Tensor result;
  bool any = false;
  for (std::size_t i = 0; i < window.rank(); ++i) {
    std::vector<double> factors = counts(window, i, lengths[i], with_padding);
    for (double& factor : factors) {
      any = any || factor != static_cast<double>(window.size[i]);
      factor = factor == 0 ? 0 : static_cast<double>(window.size[i]) / factor;
    }
    std::vector<std::int64_t> sizes(rank, 1);
    sizes[i + 1] = window.positions[i];
    const Tensor along = from_vector(factors, Shape(sizes));
    result = result.is_empty_handle() ? along : result * along;
  }
  return any ? result.cast(dtype) : Tensor();
}

void average_pool(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  const OnnxWindow window = window_of(node);
  const AxisOrder order = channels_last(rank);
  const Tensor& given = node.value(0).as(order);
  Tensor x = padded(given, window, 1, 0), y;
  if (!window.is_dilated() && (rank == 3 || rank == 4)) {
    if (rank == 3) x = x.expand_dims(1);
    y = avg_pool2d(x, pair(window.size), {.strides = pair(window.stride)});
    if (rank == 3) y = y.squeeze({1});
  } else {
    double taps = 1;
    for (const std::int64_t size : window.size) taps *= static_cast<double>(size);
    y = each_axis(node, x, window, 1, [](const Tensor& a, const Tensor& b) { return a + b; }) / taps;
  }
  const Tensor factor = corrections(node, window, rank, given.dtype());
  node.give(OnnxValue(factor.is_empty_handle() ? y : y * factor, order));
}

void lp_pool(OnnxNode& node) {
  const OnnxWindow window = window_of(node);
  const double p = static_cast<double>(node.integer("p", 2));
  const Tensor x = padded(power(abs(node.in(0)), p), window, 2, 0);
  const Tensor total = each_axis(node, x, window, 2, [](const Tensor& a, const Tensor& b) { return a + b; });
  node.give(power(total, 1 / p));
}

// Over all places, which stay as axes of size 1.
Axes places(const OnnxNode& node, bool last) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 2; axis < node.rank(0); ++axis)
    axes.push_back(static_cast<std::int64_t>(axis) - (last ? 1 : 0));
  return Axes(axes);
}

template <bool kLargest>
void global_pool(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const std::size_t rank = x.shape().rank();
  if (rank < 3) return node.give(x);
  const bool last = x.order() == channels_last(rank);
  const Tensor& from = last ? x.held() : x.plain();
  const ReduceOptions keep{.keep_dims = true};
  Tensor y = kLargest ? max(from, places(node, last), keep) : mean(from, places(node, last), keep);
  // The places are of size 1: the order of axes is a matter of the shape alone.
  const Shape shape = x.shape();
  std::vector<std::int64_t> sizes(rank, 1);
  sizes[0] = shape[0], sizes[1] = shape[1];
  node.give(y.reshape(Shape(sizes)));
}

void global_lp_pool(OnnxNode& node) {
  const double p = node.version() < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
  node.give(power(sum(power(abs(node.in(0)), p), places(node, false), {.keep_dims = true}), 1 / p));
}

// Puts values back to where a MaxPool found them.
void max_unpool(OnnxNode& node) {
  const Tensor &x = node.in(0), &indices = node.in(1);
  const std::vector<std::int64_t> size = node.integers("kernel_shape");
  const std::vector<std::int64_t> stride = node.integers("strides", std::vector<std::int64_t>(size.size(), 1));
  const std::vector<std::int64_t> pads = node.integers("pads", std::vector<std::int64_t>(2 * size.size(), 0));
  std::vector<std::int64_t> inner = {x.shape()[0], x.shape()[1]};
  if (size.size() + 2 != x.rank() || stride.size() != size.size() || pads.size() != 2 * size.size())
    node.invalid("kernel_shape, strides and pads do not fit the rank");
  for (std::size_t i = 0; i < size.size(); ++i)
    inner.push_back((x.shape()[i + 2] - 1) * stride[i] + size[i] - pads[i] - pads[i + size.size()]);
  const Shape own{Shape(inner)};
  Tensor y = scatter(indices.flatten(), x.flatten(), {static_cast<std::int64_t>(own.size())}).reshape(own);
  if (node.has(2)) {
    const std::vector<std::int64_t> wanted = node.integers(std::size_t{2});
    if (wanted.size() != y.rank()) node.invalid("the output's shape has another rank");
    // Places count in the smaller shape, which is padded at the end.
    Paddings paddings;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
      if (wanted[axis] < inner[axis]) node.invalid("the output's shape is too small");
      paddings.emplace_back(0, wanted[axis] - inner[axis]);
    }
    y = pad(y, paddings);
  }
  node.give(y);
}

constexpr OnnxOperator kPoolingRows[] = {
    {"AveragePool", 1, kNewest, average_pool},
    {"GlobalAveragePool", 1, kNewest, global_pool<false>},
    {"GlobalLpPool", 1, kNewest, global_lp_pool},
    {"GlobalMaxPool", 1, kNewest, global_pool<true>},
    {"LpPool", 2, kNewest, lp_pool},
    {"MaxPool", 1, kNewest, max_pool},
    {"MaxUnpool", 9, kNewest, max_unpool, kOperand2},
};

}  // namespace

OnnxOperators onnx_pooling_operators() { return kPoolingRows; }

}  // namespace plimsoll::internal
