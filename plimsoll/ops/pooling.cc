#include "plimsoll/ops/pooling.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/pooling_ops.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

void require_supported(const Op& op, DType dtype) {
  if (!is_pooling_supported(dtype)) refuse_dtype(op, dtype);
}

PoolRule rule_of(const char* name, std::size_t axes, SpatialSize size, SpatialSize strides,
                 const std::string& padding) {
  require_positive(size, "the sizes of the window", name);
  if (strides.rows == 0 && strides.columns == 0) strides = size;
  require_positive(strides, "strides", name);
  return {name, axes, size, strides, padding_rule(padding, name)};
}

PoolRule rule_of(const char* name, std::int64_t size, const Pool1dOptions& options) {
  const std::int64_t stride = options.strides == 0 ? size : options.strides;
  return rule_of(name, 1, {1, size}, {1, stride}, options.padding);
}

Tensor max_pool_by(const PoolRule& rule, const Tensor& x) {
  if (!x.is_empty_handle() && is_half(x.dtype())) return max_pool_by(rule, x.cast(f32)).cast(x.dtype());
  if (!is_recorded(x)) return execute(MaxPool(rule, false), x);
  const Tensor* const inputs[] = {&x};
  return std::move(execute_all(MaxPool(rule, true), inputs)[0]);
}

Tensor average_pool_by(const PoolRule& rule, const Tensor& x) {
  if (!x.is_empty_handle() && is_half(x.dtype())) return average_pool_by(rule, x.cast(f32)).cast(x.dtype());
  return execute(AveragePool(rule), x);
}

Axes between_first_and_last(const Tensor& x, const char* where) {
  if (x.is_empty_handle()) refuse_disposed(x, where, "x");
  if (x.rank() < 3)
    throw InvalidArgument(
        fmt::format("{}: x is {}; give at least three axes: batch, places, channels", where, x.shape().to_string()));
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 1; axis + 1 < x.rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  return Axes(std::move(axes));
}

// Adds the sizes and the window that pooling kernels take.
KernelCall& add_pooling(KernelCall& call, const PoolRule& rule, const Shape& x, const Shape& y) noexcept {
  const Pooling pooling = rule.kernel(x);
  const Shape from = rule.image(x), to = rule.image(y);
  call.integer(from[1]).integer(from[2]).integer(from[3]).integer(to[1]).integer(to[2]);
  call.integer(pooling.rows).integer(pooling.columns);
  call.integer(pooling.window.row_stride).integer(pooling.window.column_stride);
  call.integer(pooling.window.row_dilation).integer(pooling.window.column_dilation);
  return call.integer(pooling.window.top).integer(pooling.window.left);
}

// Of each position: the bytes of eight of them.
std::int64_t bits_of_positions(const Pooling& pooling) noexcept {
  return static_cast<std::int64_t>(max_pool_positions_bytes({8}, pooling));
}

}  // namespace

Shape PoolRule::image(const Shape& shape) const { return axes == 1 ? Shape{shape[0], 1, shape[1], shape[2]} : shape; }

Shape PoolRule::output_shape(const Shape& x) const {
  if (x.rank() != axes + 2)
    throw InvalidArgument(fmt::format("{}: x is {}; give {}", name, x.to_string(),
                                      axes == 1 ? "[batch, steps, channels]" : "[batch, rows, columns, channels]"));
  const Shape from = image(x);
  const std::int64_t rows = window_positions(padding, from[1], size.rows, strides.rows, 1);
  const std::int64_t columns = window_positions(padding, from[2], size.columns, strides.columns, 1);
  if ((rows == 0 && from[1] > 0) || (columns == 0 && from[2] > 0))
    throw InvalidArgument(fmt::format("{}: the window [{}, {}] is larger than x {}; use padding \"same\" or a larger x",
                                      name, size.rows, size.columns, x.to_string()));
  return axes == 1 ? Shape{from[0], columns, from[3]} : Shape{from[0], rows, columns, from[3]};
}

Pooling PoolRule::kernel(const Shape& x) const {
  const Shape from = image(x);
  const Margins down = margins(padding, from[1], size.rows, strides.rows, 1);
  const Margins across = margins(padding, from[2], size.columns, strides.columns, 1);
  const Window moves = {strides.rows, strides.columns, 1, 1, down.before, down.after, across.before, across.after};
  return {size.rows, size.columns, moves};
}

void MaxPool::infer(const Specs& in, SpecList& out) const {
  require_supported(*this, in.dtype(0));
  const Shape y = rule_.output_shape(in.shape(0));
  out.add(y, in.dtype(0));
  if (!with_positions_) return;
  const bool known = in.shape(0).is_known();
  out.add({known ? static_cast<std::int64_t>(max_pool_positions_bytes(y, rule_.kernel(in.shape(0)))) : kUnknownSize},
          u8);
}

void MaxPool::run(const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  const TensorView& y = run.out[0];
  max_pool(x.reshaped(rule_.image(x.shape())), y.reshaped(rule_.image(y.shape())), rule_.kernel(x.shape()),
           with_positions_ ? run.out[1].bytes() : nullptr);
}

bool MaxPool::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  const TensorView& y = run.out[0];
  if (y.dtype() != f32) return false;
  const Pooling pooling = rule_.kernel(x.shape());
  KernelCall call("max_pool");
  call.out(y.bytes()).out(with_positions_ ? run.out[1].bytes() : nullptr).in(x.bytes());
  call.integer(static_cast<std::int64_t>(y.size())).integer(with_positions_ ? bits_of_positions(pooling) : 0);
  return queue.run(add_pooling(call, rule_, x.shape(), y.shape()).items((y.size() + 31) / 32));
}

void MaxPool::gradient(GradientContext& c) const {
  c.give(0, execute(MaxPoolBack(rule_, c.input_shape(0)), c.grad(), c.output(1)));
}

void MaxPoolBack::infer(const Specs& in, SpecList& out) const { out.add(with_batch(x_, in.shape(0)), in.dtype(0)); }

void MaxPoolBack::run(const OpRun& run) const noexcept {
  const ConstTensorView& dy = run.in[0];
  const TensorView& dx = run.out[0];
  max_pool_gradient(dy.reshaped(rule_.image(dy.shape())), run.in[1].bytes(), dx.reshaped(rule_.image(dx.shape())),
                    rule_.kernel(dx.shape()));
}

bool MaxPoolBack::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& dy = run.in[0];
  const TensorView& dx = run.out[0];
  if (dx.dtype() != f32 || dy.size() > INT32_MAX) return false;
  const Shape to = rule_.image(dx.shape());
  const std::int64_t lines = to[0] * to[1];
  KernelCall call("max_pool_back");
  call.out(dx.bytes()).in(dy.bytes()).in(run.in[1].bytes()).integer(lines);
  call.integer(bits_of_positions(rule_.kernel(dx.shape())));
  add_pooling(call, rule_, dx.shape(), dy.shape());
  return queue.run(call.items(static_cast<std::size_t>((to[2] + 15) / 16), static_cast<std::size_t>(lines)));
}

void MaxPoolBack::gradient(GradientContext& c) const { c.give(0, execute(MaxPoolTake(rule_), c.grad(), c.input(1))); }

void MaxPoolTake::run(const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  const TensorView& y = run.out[0];
  max_pool_take(x.reshaped(rule_.image(x.shape())), run.in[1].bytes(), y.reshaped(rule_.image(y.shape())),
                rule_.kernel(x.shape()));
}

void MaxPoolTake::gradient(GradientContext& c) const {
  c.give(0, execute(MaxPoolBack(rule_, c.input_shape(0)), c.grad(), c.input(1)));
}

void AveragePool::infer(const Specs& in, SpecList& out) const {
  require_supported(*this, in.dtype(0));
  out.add(rule_.output_shape(in.shape(0)), in.dtype(0));
}

void AveragePool::run(const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  const TensorView& y = run.out[0];
  average_pool(x.reshaped(rule_.image(x.shape())), y.reshaped(rule_.image(y.shape())), rule_.kernel(x.shape()));
}

bool AveragePool::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const TensorView& y = run.out[0];
  if (y.dtype() != f32) return false;
  KernelCall call("average_pool");
  call.out(y.bytes()).in(run.in[0].bytes()).integer(static_cast<std::int64_t>(y.size()));
  return queue.run(add_pooling(call, rule_, run.in[0].shape(), y.shape()).items(y.size()));
}

void AveragePool::gradient(GradientContext& c) const {
  c.give(0, execute(AveragePoolBack(rule_, c.input_shape(0)), c.grad()));
}

void AveragePoolBack::infer(const Specs& in, SpecList& out) const { out.add(with_batch(x_, in.shape(0)), in.dtype(0)); }

void AveragePoolBack::run(const OpRun& run) const noexcept {
  const ConstTensorView& dy = run.in[0];
  const TensorView& dx = run.out[0];
  average_pool_gradient(dy.reshaped(rule_.image(dy.shape())), dx.reshaped(rule_.image(dx.shape())),
                        rule_.kernel(dx.shape()));
}

bool AveragePoolBack::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const TensorView& dx = run.out[0];
  if (dx.dtype() != f32) return false;
  KernelCall call("average_pool_back");
  call.out(dx.bytes()).in(run.in[0].bytes()).integer(static_cast<std::int64_t>(dx.size()));
  return queue.run(add_pooling(call, rule_, dx.shape(), run.in[0].shape()).items(dx.size()));
}

void AveragePoolBack::gradient(GradientContext& c) const { c.give(0, execute(AveragePool(rule_), c.grad())); }

Tensor max_pool1d(const Tensor& x, std::int64_t size, const Pool1dOptions& options) {
  return max_pool_by(rule_of("max_pool1d", size, options), x);
}
Tensor max_pool2d(const Tensor& x, SpatialSize size, const PoolOptions& options) {
  return max_pool_by(rule_of("max_pool2d", 2, size, options.strides, options.padding), x);
}
Tensor avg_pool1d(const Tensor& x, std::int64_t size, const Pool1dOptions& options) {
  return average_pool_by(rule_of("avg_pool1d", size, options), x);
}
Tensor avg_pool2d(const Tensor& x, SpatialSize size, const PoolOptions& options) {
  return average_pool_by(rule_of("avg_pool2d", 2, size, options.strides, options.padding), x);
}

Tensor global_avg_pool(const Tensor& x, ReduceOptions options) {
  return x.mean(between_first_and_last(x, "global_avg_pool"), options);
}
Tensor global_max_pool(const Tensor& x, ReduceOptions options) {
  return x.max(between_first_and_last(x, "global_max_pool"), options);
}

}  // namespace plimsoll
