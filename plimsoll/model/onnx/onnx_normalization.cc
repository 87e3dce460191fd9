// Normalizations.
#include <fmt/format.h>

#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/rms_norm.h"

namespace plimsoll::internal {
namespace {

void batch_norm_of(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  if (node.version() < 9 && node.integer("spatial", 1) == 0) node.unsupported("spatial = 0");
  const AxisOrder order = rank > 2 ? channels_last(rank) : AxisOrder();
  const Tensor& x = node.value(0).as(order);
  const double epsilon = node.real("epsilon", 1e-5), momentum = node.real("momentum", 0.9);
  const auto weight = [&](std::size_t input) { return node.in(input).cast(x.dtype()); };
  if (node.version() < 14 || node.integer("training_mode", 0) == 0) {
    return node.give(
        OnnxValue(batch_norm_inference(x, weight(1), weight(2), weight(3), weight(4), {.epsilon = epsilon}), order));
  }
  const BatchNormResult result = batch_norm_training(x, weight(1), weight(2), {.epsilon = epsilon});
  node.give(0, OnnxValue(result.y, order));
  const DType dtype = node.dtype(3);
  node.give(1, (node.in(3).cast(x.dtype()) * momentum + result.mean * (1 - momentum)).cast(dtype));
  node.give(2, (node.in(4).cast(x.dtype()) * momentum + result.variance * (1 - momentum)).cast(dtype));
}

void instance_norm(OnnxNode& node) {
  const Tensor& x = node.in(0);
  if (x.rank() < 3) node.invalid("it takes [batch, channels, places ...]");
  const std::int64_t rows = x.shape()[0] * x.shape()[1];
  const std::int64_t places = rows == 0 ? 1 : static_cast<std::int64_t>(x.size()) / rows;
  const Tensor flat = layer_norm(x.reshape({rows, places}), {}, {}, {.epsilon = node.real("epsilon", 1e-5)});
  node.give(flat.reshape(x.shape()) * per_channel(node.in(1), x.rank()) + per_channel(node.in(2), x.rank()));
}

// Channels in groups; versions before 21 scale each group, later ones each channel.
void group_norm_of(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  const std::int64_t groups = node.integer("num_groups", 0);
  if (rank < 3) node.invalid("it takes [batch, channels, places ...]");
  const Tensor& x = node.value(0).as(channels_last(rank));
  const std::int64_t channels = x.shape().back();
  if (groups < 1 || channels % groups != 0) node.invalid(fmt::format("{} groups of {} channels", groups, channels));
  const auto weight = [&](std::size_t input) {
    const Tensor each = node.in(input).cast(x.dtype());
    return node.version() < 21 ? repeat(each, channels / groups, 0) : each;
  };
  node.give(OnnxValue(group_norm(x, groups, weight(1), weight(2), {.epsilon = node.real("epsilon", 1e-5)}),
                      channels_last(rank)));
}

std::vector<std::int64_t> axes_from(std::size_t first, std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = first; axis < rank; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return axes;
}

void layer_norm_of(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", -1, x.rank());
  const double epsilon = node.real("epsilon", 1e-5);
  const Tensor gamma = node.in(1), beta = node.in_or(2);
  const Shape inner(std::vector<std::int64_t>(x.shape().begin() + static_cast<std::ptrdiff_t>(axis), x.shape().end()));
  const bool fits = gamma.shape() == inner && (beta.is_empty_handle() || beta.shape() == inner);
  if (fits && !node.wants(1) && !node.wants(2))
    return node.give(layer_norm(x, gamma, beta, {.epsilon = epsilon, .axis = static_cast<std::int64_t>(axis)}));
  const Tensor wide = is_half(x.dtype()) ? x.cast(f32) : x;
  const Axes axes(axes_from(axis, x.rank()));
  const Tensor average = mean(wide, axes, {.keep_dims = true}), centered = wide - average;
  const Tensor scale = rsqrt(mean(square(centered), axes, {.keep_dims = true}) + epsilon);
  Tensor y = (centered * scale).cast(x.dtype()) * gamma;
  if (!beta.is_empty_handle()) y = y + beta;
  node.give(0, y);
  node.give(1, average);
  node.give(2, scale);
}

void rms_norm_of(OnnxNode& node) {
  const Tensor &x = node.in(0), &scale = node.in(1);
  const auto axis = static_cast<std::ptrdiff_t>(node.axis("axis", -1, x.rank()));
  const Shape inner(std::vector<std::int64_t>(x.shape().begin() + axis, x.shape().end()));
  const DType wide = is_half(x.dtype()) ? f32 : x.dtype();
  const bool fits = scale.shape() == inner && scale.dtype() == x.dtype() && wide == x.dtype();
  const Tensor y = rms_norm(x.cast(wide), fits ? scale : Tensor(),
                            {.epsilon = node.real("epsilon", 1e-5), .axis = static_cast<std::int64_t>(axis)});
  node.give(fits ? y : y.cast(scale.dtype()) * scale);
}

void lp_normalization(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::int64_t p = node.integer("p", 2);
  const auto axis = static_cast<std::int64_t>(node.axis("axis", -1, x.rank()));
  if (p != 1 && p != 2) node.unsupported(fmt::format("p = {}", p));
  const Tensor length =
      p == 1 ? sum(abs(x), Axes({axis}), {.keep_dims = true}) : sqrt(sum(square(x), Axes({axis}), {.keep_dims = true}));
  node.give(divide_no_nan(x, length));
}

void mean_variance(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const Axes axes(node.integers("axes", {0, 2, 3}));
  const Tensor centered = x - mean(x, axes, {.keep_dims = true});
  node.give(centered / (sqrt(mean(square(centered), axes, {.keep_dims = true})) + 1e-9));
}

// Across channels: each by the squares of its neighbours.
void local_response(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::int64_t size = node.integer("size", 1);
  if (size < 1 || size > 1024 || x.rank() < 2) node.invalid(fmt::format("a size of {}", size));
  Paddings paddings(x.rank(), {0, 0});
  paddings[1] = {(size - 1) / 2, size / 2};
  const Tensor squares = pad(square(x), paddings);
  std::vector<std::int64_t> begin(x.rank(), 0), count(x.shape().begin(), x.shape().end());
  Tensor total;
  for (std::int64_t i = 0; i < size; ++i) {
    begin[1] = i;
    const Tensor part = slice(squares, begin, count);
    total = total.is_empty_handle() ? part : total + part;
  }
  const double alpha = node.real("alpha", 1e-4) / static_cast<double>(size);
  node.give(x / power(total * alpha + node.real("bias", 1), node.real("beta", 0.75)));
}

constexpr OnnxOperator kNormalizationRows[] = {
    {"BatchNormalization", 1, kNewest, batch_norm_of},        {"GroupNormalization", 18, kNewest, group_norm_of},
    {"InstanceNormalization", 1, kNewest, instance_norm},     {"LRN", 1, kNewest, local_response},
    {"LayerNormalization", 17, kNewest, layer_norm_of},       {"LpNormalization", 1, kNewest, lp_normalization},
    {"MeanVarianceNormalization", 9, kNewest, mean_variance}, {"RMSNormalization", 23, kNewest, rms_norm_of},
};

}  // namespace

OnnxOperators onnx_normalization_operators() { return kNormalizationRows; }

}  // namespace plimsoll::internal
