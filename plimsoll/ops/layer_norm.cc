#include "plimsoll/ops/layer_norm.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/kernels/layer_norm.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/layer_norm_operands.h"
#include "plimsoll/ops/internal/layer_norm_second_order.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

std::int64_t columns_of(const Shape& x, std::size_t axis) {
  return rows_of(part_of(x, axis, x.rank()), x.rank() - axis);
}

// x as [items, elements].
NormGrid grid_of(const Shape& x, std::size_t axis) {
  const std::int64_t rows = rows_of(x, axis), columns = columns_of(x, axis);
  return {{rows, columns}, {rows, 1}, {columns}, Axes(1), Axes(0)};
}

// Inputs x, dy, mean, rstd and, when it has one, gamma; outputs dx, dgamma, dbeta.
class LayerNormBack final : public OpOf<LayerNormBack> {
 public:
  LayerNormBack(std::size_t axis, bool has_gamma) noexcept : axis_(axis), has_gamma_(has_gamma) {}
  const char* name() const noexcept override { return "layer_norm_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape &x = in.shape(0), row = part_of(x, axis_, x.rank());
    out.add(x, in.dtype(0));
    out.add(row, in.dtype(0));
    out.add(row, in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    const Shape& x = in.shape(0);
    return x.size() == 0 ? 0 : layer_norm_gradient_scratch_bytes(rows_of(x, axis_), columns_of(x, axis_), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    const TensorView &dgamma = run.out[1], &dbeta = run.out[2];
    if (x.size() == 0) {
      if (dgamma.size() > 0) std::memset(dgamma.bytes(), 0, dgamma.nbytes());
      if (dbeta.size() > 0) std::memset(dbeta.bytes(), 0, dbeta.nbytes());
      return;
    }
    layer_norm_gradient(x, columns_of(x.shape(), axis_), has_gamma_ ? run.in[4] : ConstTensorView(), run.in[2],
                        run.in[3], run.in[1], {run.out[0], dgamma, dbeta}, run.scratch);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(5) - 1}; }
  OpFacts facts() const noexcept override { return {.overwrites = slot(1)}; }
  void gradient(GradientContext& c) const override {
    give_second_order(c, grid_of(c.input_shape(0), axis_), has_gamma_);
  }
  bool operator==(const LayerNormBack&) const = default;

 private:
  std::size_t axis_;
  bool has_gamma_;
};

// Inputs: x, and gamma and beta if present. Outputs: y and, for the gradient, mean and rstd. `is_again`: a
// recomputation, whose result must not be shared with the first.
class LayerNorm final : public OpOf<LayerNorm> {
 public:
  LayerNorm(std::size_t axis, double epsilon, NormInputs inputs, bool with_moments, bool is_again = false) noexcept
      : axis_(axis), epsilon_(epsilon), inputs_(inputs), with_moments_(with_moments), is_again_(is_again) {}
  const char* name() const noexcept override { return "layer_norm"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : inputs_.name(input); }
  void infer(const Specs& in, SpecList& out) const override {
    require_same_dtype(*this, in);
    require_floating(*this, in.dtype(0));
    const Shape& x = in.shape(0);
    require_parameters(*this, in, inputs_, part_of(x, axis_, x.rank()));
    out.add(x, in.dtype(0));
    if (!with_moments_) return;
    out.add(part_of(x, 0, axis_), in.dtype(0));
    out.add(part_of(x, 0, axis_), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) return;
    LayerNormOutputs outputs = {run.out[0], {}, {}};
    if (with_moments_) outputs.mean = run.out[1], outputs.rstd = run.out[2];
    internal::layer_norm(x, columns_of(x.shape(), axis_),
                         inputs_.has_gamma ? run.in[inputs_.gamma()] : ConstTensorView(),
                         inputs_.has_beta ? run.in[inputs_.beta()] : ConstTensorView(), epsilon_, outputs);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override {
    return {.inputs = slot(0) | (inputs_.has_gamma ? slot(inputs_.gamma()) : 0) |
                      (inputs_.has_beta ? slot(inputs_.beta()) : 0),
            .outputs = slot(1) | slot(2)};
  }
  void gradient(GradientContext& c) const override;
  Tensor remake(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.has_gradient = with_moments_, .remakes = with_moments_}; }
  std::size_t make_lean() noexcept override { return std::exchange(with_moments_, false) ? 1 : 0; }
  bool operator==(const LayerNorm&) const = default;

 private:
  std::size_t axis_;
  double epsilon_;
  NormInputs inputs_;
  bool with_moments_, is_again_;
};

bool LayerNorm::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  if (x.dtype() != f32 || x.size() == 0) return false;
  const std::int64_t columns = columns_of(x.shape(), axis_), rows = static_cast<std::int64_t>(x.size()) / columns;
  KernelCall call("layer_norm");
  call.out(run.out[0].bytes()).out(with_moments_ ? run.out[1].bytes() : nullptr);
  call.out(with_moments_ ? run.out[2].bytes() : nullptr).in(x.bytes());
  call.in(inputs_.has_gamma ? run.in[inputs_.gamma()].bytes() : nullptr);
  call.in(inputs_.has_beta ? run.in[inputs_.beta()].bytes() : nullptr).integer(rows).integer(columns);
  call.integer(inputs_.has_gamma ? 1 : 0).integer(inputs_.has_beta ? 1 : 0).integer(with_moments_ ? 1 : 0);
  return queue.run(call.number(epsilon_).items(static_cast<std::size_t>(rows)));
}

// The parameters' gradients come first: dx may overwrite dy.
bool LayerNormBack::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView &x = run.in[0], &dy = run.in[1], &mean = run.in[2], &rstd = run.in[3];
  if (x.dtype() != f32 || x.size() == 0) return false;
  const std::int64_t columns = columns_of(x.shape(), axis_), rows = static_cast<std::int64_t>(x.size()) / columns;
  const auto fit = static_cast<std::int64_t>(run.scratch.size() / (2 * sizeof(float))) / columns;
  if (fit < 1) return false;
  const std::int64_t most = std::clamp<std::int64_t>(std::min(fit, rows / 16), 1, 32);
  const std::int64_t piece_rows = (rows + most - 1) / most, pieces = (rows + piece_rows - 1) / piece_rows;
  KernelCall slopes("layer_norm_slopes");
  slopes.out(run.scratch.data()).in(x.bytes()).in(dy.bytes()).in(mean.bytes()).in(rstd.bytes());
  slopes.integer(rows).integer(columns).integer(piece_rows);
  slopes.items(static_cast<std::size_t>((columns + 15) / 16), static_cast<std::size_t>(pieces));
  KernelCall join("layer_norm_join_slopes");
  join.out(run.out[1].bytes()).out(run.out[2].bytes()).in(run.scratch.data()).integer(columns).integer(pieces);
  join.items(static_cast<std::size_t>(columns));
  KernelCall back("layer_norm_back");
  back.out(run.out[0].bytes()).in(x.bytes()).in(dy.bytes()).in(mean.bytes()).in(rstd.bytes());
  back.in(has_gamma_ ? run.in[4].bytes() : nullptr).integer(rows).integer(columns).integer(has_gamma_ ? 1 : 0);
  return queue.run(slopes) && queue.run(join) && queue.run(back.items(static_cast<std::size_t>(rows)));
}

Tensor LayerNorm::remake(GradientContext& c) const {
  const bool recorded = is_recorded(c.input(0));
  NormList operands = {&c.input(0)};
  if (inputs_.has_gamma) operands.add_if_any(c.input(inputs_.gamma()));
  if (inputs_.has_beta) operands.add_if_any(c.input(inputs_.beta()));
  const LayerNorm op(axis_, epsilon_, inputs_, recorded, true);
  return recorded ? std::move(execute_all(op, operands.span())[0]) : execute_on(op, operands.span());
}

void LayerNorm::gradient(GradientContext& c) const {
  if (c.has_grad(0)) {
    Tensor dy = c.take_grad();
    NormList operands = {&c.input(0), &dy, &c.output(1), &c.output(2)};
    if (inputs_.has_gamma) operands.add_if_any(c.input(inputs_.gamma()));
    std::vector<Tensor> gradients =
        execute_all_over(LayerNormBack(axis_, inputs_.has_gamma), std::move(dy), operands.span());
    c.give(0, std::move(gradients[0]));
    if (inputs_.has_gamma) c.give(inputs_.gamma(), std::move(gradients[1]));
    if (inputs_.has_beta) c.give(inputs_.beta(), std::move(gradients[2]));
  }
  if (c.wants(0) && (c.has_grad(1) || c.has_grad(2)))
    c.give(0, moments_gradient(grid_of(c.input_shape(0), axis_), c.input(0), c.output(1), c.output(2),
                               c.has_grad(1) ? c.grad(1) : Tensor(), c.has_grad(2) ? c.grad(2) : Tensor()));
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const LayerNormOptions& options) {
  constexpr const char* kName = "layer_norm";
  require_epsilon(options.epsilon, kName);
  if (x.is_empty_handle()) refuse_disposed(x, kName, "x");
  if (is_half(x.dtype())) return layer_norm(x.cast(f32), widened(gamma), widened(beta), options).cast(x.dtype());
  const bool recorded = is_recorded(x);
  const LayerNorm op(resolve_axis(options.axis, x.rank(), kName), options.epsilon,
                     {!gamma.is_empty_handle(), !beta.is_empty_handle()}, recorded);
  NormList operands = {&x};
  operands.add_if_any(gamma);
  operands.add_if_any(beta);
  if (!recorded) return execute_on(op, operands.span());
  return std::move(execute_all(op, operands.span())[0]);
}

}  // namespace plimsoll
