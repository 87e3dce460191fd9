#include "plimsoll/ops/convolution.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/convolution_mask.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/convolution_ops.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/tensor/evict/eager.h"

namespace plimsoll {
namespace {

// All axes but the last.
Axes pixels(std::size_t rank) {
  std::vector<std::int64_t> axes(rank - 1);
  for (std::size_t axis = 0; axis + 1 < rank; ++axis) axes[axis] = static_cast<std::int64_t>(axis);
  return Axes(std::move(axes));
}

Tensor through_activation(UnaryOp activation, const Tensor& y, const Tensor& dy) {
  const BinaryOp op = activation == UnaryOp::relu   ? BinaryOp::relu_grad
                      : activation == UnaryOp::tanh ? BinaryOp::tanh_grad
                                                    : BinaryOp::sigmoid_grad;
  return execute(Binary(op), y, dy);
}

std::optional<UnaryOp> activation_named(std::string_view word, const char* where) {
  if (word.empty() || word == "linear") return {};
  if (word == "relu") return UnaryOp::relu;
  if (word == "sigmoid") return UnaryOp::sigmoid;
  if (word == "tanh") return UnaryOp::tanh;
  throw InvalidArgument(
      fmt::format("{}: the activation is \"{}\"; give \"linear\", \"relu\", \"sigmoid\" or \"tanh\", or apply another "
                  "to the result",
                  where, word));
}

// Where the thread's budget evicts, scratch for the threads that there are: it could take what others need to stay.
std::int64_t lanes_here() { return evict::current_domain() ? num_threads() : 0; }

ConvolutionRule rule_of(const char* name, const ConvOptions& options) {
  require_positive(options.strides, "strides", name);
  require_positive(options.dilations, "dilations", name);
  ConvolutionRule rule = {name,          2, options.strides, options.dilations, padding_rule(options.padding, name),
                          options.groups};
  rule.lanes = lanes_here();
  if (!options.around) return rule;
  constexpr std::int64_t kMost = 1 << 24;
  for (const std::int64_t side : *options.around)
    if (side < 0 || side > kMost)
      throw InvalidArgument(fmt::format("{}: {} zeros around x; give 0 to {}", name, side, kMost));
  rule.padding = PaddingRule::given;
  rule.rows = {(*options.around)[0], (*options.around)[1]};
  rule.columns = {(*options.around)[2], (*options.around)[3]};
  return rule;
}

// Halves are computed in f32 and rounded once.
template <class... Tensors>
Tensor execute_wide(const Op& op, const Tensor& x, const Tensors&... others) {
  if (x.is_empty_handle() || !is_half(x.dtype()) || (... || (others.dtype() != x.dtype())))
    return execute(op, x, others...);
  return execute(op, x.cast(f32), others.cast(f32)...).cast(x.dtype());
}

}  // namespace

std::string Convolve::input_name(std::size_t input) const { return input == 0 ? "x" : input == 1 ? "filter" : "bias"; }

void Convolve::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  if (!is_convolution_supported(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
  const Shape y = rule_.output_shape(in.shape(0), in.shape(1));
  if (has_bias_ && !(in.shape(2) == Shape{y.back()}))
    throw InvalidArgument(fmt::format("{}: bias is {}, the filter {} has {} output channels; give one for each", name(),
                                      in.shape(2).to_string(), in.shape(1).to_string(), y.back()));
  out.add(y, in.dtype(0));
  if (with_mask_) out.add({y.is_known() ? static_cast<std::int64_t>(relu_mask_bytes(y.size())) : kUnknownSize}, u8);
}

std::uint64_t Convolve::cost(const Specs& in, const SpecList& out) const {
  return Op::cost(in, out) + convolution_cost(out[0].shape, in.shape(1));
}

std::size_t Convolve::workspace_bytes(const Specs& in, const SpecList& out) const {
  const Shape &x = in.shape(0), &filter = in.shape(1);
  return convolution_scratch_bytes(ConvolutionPass::forward, rule_.image(x), rule_.window(filter),
                                   rule_.image(out[0].shape), rule_.kernel(x, filter), in.dtype(0));
}

void Convolve::run(const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &filter = run.in[1];
  const TensorView& y = run.out[0];
  Rectifier rectifier{.on = activation_ == UnaryOp::relu || activation_ == UnaryOp::relu6};
  if (activation_ == UnaryOp::relu6) rectifier.most = 6;
  convolution(x.reshaped(rule_.image(x.shape())), filter.reshaped(rule_.window(filter.shape())),
              y.reshaped(rule_.image(y.shape())), rule_.kernel(x.shape(), filter.shape()),
              {has_bias_ ? &run.in[2] : nullptr, rectifier}, run.scratch);
  if (activation_ && !rectifier.on) unary(*activation_, y, y);
  if (with_mask_) relu_mask(y, run.out[1].bytes());
}

bool Convolve::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &filter = run.in[1];
  const TensorView& y = run.out[0];
  const Shape images = rule_.image(x.shape()), window = rule_.window(filter.shape()), results = rule_.image(y.shape());
  const Convolution kernel = rule_.kernel(x.shape(), filter.shape());
  if (y.dtype() != f32 || kernel.groups != 1 || y.size() > INT32_MAX) return false;
  const std::int64_t lines = results[0] * results[1], channels = results[3];
  const bool relu = activation_ == UnaryOp::relu;
  const ConvolutionTile tile = convolution_tile(channels);
  KernelCall call(tile.wide ? "convolution.16" : "convolution.8");
  call.out(y.bytes()).in(x.bytes()).in(filter.bytes()).in(has_bias_ ? run.in[2].bytes() : nullptr);
  call.integer(lines).integer(channels).integer(images[3]);
  add_window(call, window[0], window[1], images, results, kernel.window).integer(has_bias_ ? 1 : 0);
  if (!launch_convolution(queue, call.integer(relu ? 1 : 0), tile, channels, lines, results[2])) return false;
  if (activation_ && !relu && !launch_unary(queue, op_name(*activation_), y, y)) return false;
  return !with_mask_ || launch_relu_mask(queue, y, run.out[1]);
}

SavedSlots Convolve::saved(SlotMask wanted) const {
  return {.inputs = (wanted & slot(0) ? slot(1) : 0) | (wanted & slot(1) ? slot(0) : 0),
          .outputs = with_mask_    ? slot(1)
                     : activation_ ? slot(0)
                                   : 0,
          .remade = slot(0)};
}

void Convolve::gradient(GradientContext& c) const {
  Tensor dy = c.take_grad();
  if (with_mask_) {
    const Tensor* const operands[] = {&dy, &c.output(1)};
    dy = execute_over(MaskSlope(), std::move(dy), operands);
  } else if (activation_) {
    dy = through_activation(*activation_, c.output(0), dy);
  }
  if (c.wants(1)) c.give(1, execute(ConvolveFilter(rule_, c.input_shape(1)), c.input(0), dy));
  c.done_with(0);
  if (has_bias_ && c.wants(2)) c.give(2, dy.sum(pixels(dy.rank())));
  if (c.wants(0)) c.give(0, execute(ConvolveBack(rule_, c.input_shape(0)), dy, c.input(1)));
}

Tensor conv1d(const Tensor& x, const Tensor& filter, const Conv1dOptions& options) {
  constexpr const char* kName = "conv1d";
  require_positive(options.strides, "strides", kName);
  require_positive(options.dilations, "dilations", kName);
  const PaddingRule padding = padding_rule(options.padding, kName, true);
  return execute_wide(
      Convolve({kName, 1, {1, options.strides}, {1, options.dilations}, padding, options.groups, false, lanes_here()}),
      x, filter);
}

Tensor conv2d(const Tensor& x, const Tensor& filter, const ConvOptions& options) {
  return execute_wide(Convolve(rule_of("conv2d", options)), x, filter);
}

Tensor depthwise_conv2d(const Tensor& x, const Tensor& filter, const DepthwiseOptions& options) {
  ConvolutionRule rule = rule_of("depthwise_conv2d", {options.strides, options.padding, options.dilations});
  rule.depthwise = true;
  return execute_wide(Convolve(rule), x, filter);
}

Tensor conv2d_transpose(const Tensor& x, const Tensor& filter, const ConvOptions& options) {
  if (options.around) throw InvalidArgument("conv2d_transpose: takes padding by a word; leave `around` out");
  return execute_wide(ConvolveBack(rule_of("conv2d_transpose", options)), x, filter);
}

Tensor conv2d_bias_activation(const Tensor& x, const Tensor& filter, const Tensor& bias, std::string_view activation,
                              const ConvOptions& options) {
  constexpr const char* kName = "conv2d_bias_activation";
  if (!x.is_empty_handle() && is_half(x.dtype()) && filter.dtype() == x.dtype() && bias.dtype() == x.dtype())
    return conv2d_bias_activation(x.cast(f32), filter.cast(f32), bias.cast(f32), activation, options).cast(x.dtype());
  const ConvolutionRule rule = rule_of(kName, options);
  const std::optional<UnaryOp> function = activation_named(activation, kName);
  const bool with_mask = function == UnaryOp::relu && is_recorded(x);
  const Convolve op(rule, true, function, with_mask);
  const Tensor* const inputs[] = {&x, &filter, &bias};
  return with_mask ? std::move(execute_all(op, inputs)[0]) : execute_on(op, inputs);
}

}  // namespace plimsoll
