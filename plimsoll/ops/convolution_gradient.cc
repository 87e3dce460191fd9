// The gradients of convolutions, which are convolutions.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/kernel_queue.h"
#include "plimsoll/kernels/convolution_mask.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/convolution_ops.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll::internal {
namespace {

// For a product of two inputs: the gradient of each reads the other.
SavedSlots saved_of_product(SlotMask wanted) {
  return {.inputs = (wanted & slot(0) ? slot(1) : 0) | (wanted & slot(1) ? slot(0) : 0)};
}

}  // namespace

void MaskSlope::run(const OpRun& run) const noexcept { relu_mask_gradient(run.in[0], run.in[1].bytes(), run.out[0]); }

bool MaskSlope::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  if (run.out[0].dtype() != f32) return false;
  KernelCall call("mask_slope");
  call.out(run.out[0].bytes()).in(run.in[0].bytes()).in(run.in[1].bytes());
  return queue.run(call.integer(static_cast<std::int64_t>(run.out[0].size())).items((run.out[0].size() + 15) / 16));
}

void MaskSlope::gradient(GradientContext& c) const { c.give(0, execute(MaskSlope(), c.grad(), c.input(1))); }

const char* ConvolveBack::name() const noexcept { return x_.is_set() ? "convolution_input_gradient" : rule_.name; }

std::string ConvolveBack::input_name(std::size_t input) const {
  return input == 1 ? "filter" : x_.is_set() ? "dy" : "x";
}

void ConvolveBack::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  if (!is_convolution_supported(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
  if (!x_.is_set()) return out.add(rule_.transposed_shape(in.shape(0), in.shape(1)), in.dtype(0));
  out.add(with_batch(x_, in.shape(0)), in.dtype(0));
}

std::uint64_t ConvolveBack::cost(const Specs& in, const SpecList& out) const {
  return Op::cost(in, out) + convolution_cost(in.shape(0), in.shape(1));
}

std::size_t ConvolveBack::workspace_bytes(const Specs& in, const SpecList& out) const {
  const Shape &dy = in.shape(0), &filter = in.shape(1), &x = out[0].shape;
  return convolution_scratch_bytes(ConvolutionPass::input_gradient, rule_.image(x), rule_.window(filter),
                                   rule_.image(dy), rule_.kernel(x, filter), in.dtype(0));
}

void ConvolveBack::run(const OpRun& run) const noexcept {
  const ConstTensorView &dy = run.in[0], &filter = run.in[1];
  const TensorView& dx = run.out[0];
  convolution_input_gradient(dy.reshaped(rule_.image(dy.shape())), filter.reshaped(rule_.window(filter.shape())),
                             dx.reshaped(rule_.image(dx.shape())), rule_.kernel(dx.shape(), filter.shape()), {},
                             run.scratch);
}

// The filter with its channels exchanged, then a convolution of dy.
bool ConvolveBack::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &dy = run.in[0], &filter = run.in[1];
  const TensorView& dx = run.out[0];
  const Shape from = rule_.image(dy.shape()), window = rule_.window(filter.shape()), to = rule_.image(dx.shape());
  const Convolution kernel = rule_.kernel(dx.shape(), filter.shape());
  if (dx.dtype() != f32 || kernel.groups != 1 || filter.nbytes() > run.scratch.size()) return false;
  if (dx.size() > INT32_MAX || dy.size() > INT32_MAX) return false;
  const std::int64_t lines = to[0] * to[1], taps = window[0] * window[1];
  const TensorView turned(run.scratch.data(), 0, f32, {taps, window[3], window[2]});
  const std::int64_t steps[] = {window[2] * window[3], 1, window[3]};
  StridedBox box;
  if (!box.set(3, turned.shape().sizes().data(), steps) || !launch_strided(queue, filter, box, turned)) return false;
  const ConvolutionTile tile = convolution_tile(to[3]);
  KernelCall call(tile.wide ? "convolution_back.16" : "convolution_back.8");
  call.out(dx.bytes()).in(dy.bytes()).in(turned.bytes()).in(nullptr);
  call.integer(lines).integer(to[3]).integer(from[3]);
  add_window(call, window[0], window[1], from, to, kernel.window).integer(0).integer(0);
  const std::int64_t stride = kernel.window.column_stride, each = (to[2] + stride - 1) / stride;
  return launch_convolution(queue, call, tile, to[3], lines * stride, each);
}

SavedSlots ConvolveBack::saved(SlotMask wanted) const { return saved_of_product(wanted); }

void ConvolveBack::gradient(GradientContext& c) const {
  if (c.wants(0)) c.give(0, execute(Convolve(rule_), c.grad(), c.input(1)));
  if (c.wants(1)) c.give(1, execute(ConvolveFilter(rule_, c.input_shape(1)), c.grad(), c.input(0)));
}

void ConvolveFilter::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  if (!is_convolution_supported(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
  out.add(filter_, in.dtype(0));
}

std::uint64_t ConvolveFilter::cost(const Specs& in, const SpecList& out) const {
  return Op::cost(in, out) + convolution_cost(in.shape(1), out[0].shape);
}

std::size_t ConvolveFilter::workspace_bytes(const Specs& in, const SpecList&) const {
  const Shape &x = in.shape(0), &dy = in.shape(1);
  return convolution_scratch_bytes(ConvolutionPass::filter_gradient, rule_.image(x), rule_.window(filter_),
                                   rule_.image(dy), rule_.kernel(x, filter_), in.dtype(0));
}

void ConvolveFilter::run(const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &dy = run.in[1];
  convolution_filter_gradient(x.reshaped(rule_.image(x.shape())), dy.reshaped(rule_.image(dy.shape())),
                              run.out[0].reshaped(rule_.window(filter_)), rule_.kernel(x.shape(), filter_),
                              run.scratch);
}

bool ConvolveFilter::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &dy = run.in[1];
  const Shape from = rule_.image(x.shape()), window = rule_.window(filter_), to = rule_.image(dy.shape());
  const Convolution kernel = rule_.kernel(x.shape(), filter_);
  if (x.dtype() != f32 || kernel.groups != 1 || dy.size() > INT32_MAX) return false;
  const ConvolutionTile tile = convolution_tile(to[3]);
  KernelCall call(tile.wide ? "convolution_filter.16" : "convolution_filter.8");
  call.out(run.out[0].bytes()).in(x.bytes()).in(dy.bytes()).integer(to[0] * to[1]).integer(to[3]).integer(from[3]);
  add_window(call, window[0], window[1], from, to, kernel.window);
  // Taps beside each other in a line of the image are one row of weights.
  const std::int64_t joined = kernel.window.column_dilation == 1 ? window[1] : 1;
  return launch_convolution(queue, call, tile, to[3], window[0] * window[1] / joined, joined * from[3]);
}

SavedSlots ConvolveFilter::saved(SlotMask wanted) const { return saved_of_product(wanted); }

void ConvolveFilter::gradient(GradientContext& c) const {
  if (c.wants(0)) c.give(0, execute(ConvolveBack(rule_, c.input_shape(0)), c.input(1), c.grad()));
  if (c.wants(1)) c.give(1, execute(Convolve(rule_), c.input(0), c.grad()));
}

}  // namespace plimsoll::internal
