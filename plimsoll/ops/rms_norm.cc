#include "plimsoll/ops/rms_norm.h"

#include <cstring>
#include <utility>

#include "plimsoll/kernels/layer_norm.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/layer_norm_operands.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

std::int64_t columns_of(const Shape& x, std::size_t axis) {
  return rows_of(part_of(x, axis, x.rank()), x.rank() - axis);
}

// Inputs x, dy, rstd and, when it has one, gamma; outputs dx and dgamma.
class RmsNormBack final : public OpOf<RmsNormBack> {
 public:
  RmsNormBack(std::size_t axis, bool has_gamma) noexcept : axis_(axis), has_gamma_(has_gamma) {}
  const char* name() const noexcept override { return "rms_norm_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    out.add(in.shape(0), in.dtype(0));
    out.add(part_of(in.shape(0), axis_, in.shape(0).rank()), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    const Shape& x = in.shape(0);
    return x.size() == 0 ? 0 : layer_norm_gradient_scratch_bytes(rows_of(x, axis_), columns_of(x, axis_), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) {
      if (run.out[1].size() > 0) std::memset(run.out[1].bytes(), 0, run.out[1].nbytes());
      return;
    }
    layer_norm_gradient(x, columns_of(x.shape(), axis_), has_gamma_ ? run.in[3] : ConstTensorView(), {}, run.in[2],
                        run.in[1], {run.out[0], run.out[1], {}}, run.scratch);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(4) - 1}; }
  OpFacts facts() const noexcept override { return {.overwrites = slot(1)}; }
  void gradient(GradientContext& c) const override;
  bool operator==(const RmsNormBack&) const = default;

 private:
  std::size_t axis_;
  bool has_gamma_;
};

// With r = rstd, w = dy gamma and sums over a row of n: dx = r w - r^3 x (sum of w x) / n, dgamma = sum of dy x r over
// rows. u and v are their gradients; r depends on x: dr/dx = -r^3 x / n. Here r is an input of its own.
void RmsNormBack::gradient(GradientContext& c) const {
  const Shape& shape = c.input_shape(0);
  const std::int64_t rows = rows_of(shape, axis_), columns = columns_of(shape, axis_);
  const Tensor x = c.input(0).reshape({rows, columns}), dy = c.input(1).reshape({rows, columns});
  const Tensor r = c.input(2).reshape({rows, 1});
  const Tensor gamma = has_gamma_ ? c.input(3).reshape({1, columns}) : Tensor();
  const double n = static_cast<double>(columns);
  const auto row_sum = [](const Tensor& t) { return sum(t, {1}, {.keep_dims = true}); };
  const Tensor w = has_gamma_ ? dy * gamma : dy, r3 = r * r * r;
  Tensor of_x, of_dy, of_r, of_gamma;
  const auto add = [](Tensor& to, const Tensor& more) { to = to.is_empty_handle() ? more : to + more; };
  if (c.has_grad(0)) {
    const Tensor u = c.grad(0).reshape({rows, columns});
    const Tensor a = row_sum(u * w), b = row_sum(u * x), s = row_sum(w * x);
    const Tensor of_w = r * u - r3 * x * (b / n);
    add(of_x, -(r3 / n) * (u * s + w * b));
    add(of_dy, has_gamma_ ? of_w * gamma : of_w);
    add(of_r, a - 3 * r * r * b * s / n);
    if (has_gamma_) add(of_gamma, sum(of_w * dy, {0}));
  }
  if (c.has_grad(1)) {
    const Tensor v = c.grad(1).reshape({1, columns});
    add(of_x, v * dy * r);
    add(of_dy, v * x * r);
    add(of_r, row_sum(v * dy * x));
  }
  if (of_x.is_empty_handle()) return;
  c.give(0, of_x.reshape(shape));
  c.give(1, of_dy.reshape(shape));
  c.give(2, of_r.reshape(c.input_shape(2)));
  if (!of_gamma.is_empty_handle()) c.give(3, of_gamma.reshape(c.input_shape(3)));
}

// Inputs x and, when it has one, gamma. Outputs y and, for the gradient, rstd.
class RmsNorm final : public OpOf<RmsNorm> {
 public:
  RmsNorm(std::size_t axis, double epsilon, bool has_gamma, bool with_rstd) noexcept
      : axis_(axis), epsilon_(epsilon), has_gamma_(has_gamma), with_rstd_(with_rstd) {}
  const char* name() const noexcept override { return "rms_norm"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : "gamma"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_same_dtype(*this, in);
    require_floating(*this, in.dtype(0));
    const Shape& x = in.shape(0);
    require_parameters(*this, in, {has_gamma_, false}, part_of(x, axis_, x.rank()));
    out.add(x, in.dtype(0));
    if (with_rstd_) out.add(part_of(x, 0, axis_), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) return;
    layer_norm(x, columns_of(x.shape(), axis_), has_gamma_ ? run.in[1] : ConstTensorView(), {}, epsilon_,
               {run.out[0], {}, with_rstd_ ? run.out[1] : TensorView()}, false);
  }
  SavedSlots saved(SlotMask) const override {
    return {.inputs = slot(0) | (has_gamma_ ? slot(1) : 0), .outputs = slot(1)};
  }
  void gradient(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.has_gradient = with_rstd_}; }
  std::size_t make_lean() noexcept override { return std::exchange(with_rstd_, false) ? 1 : 0; }
  bool operator==(const RmsNorm&) const = default;

 private:
  std::size_t axis_;
  double epsilon_;
  bool has_gamma_, with_rstd_;
};

void RmsNorm::gradient(GradientContext& c) const {
  const Shape& shape = c.input_shape(0);
  if (c.has_grad(0)) {
    Tensor dy = c.take_grad();
    NormList operands = {&c.input(0), &dy, &c.output(1)};
    if (has_gamma_) operands.add_if_any(c.input(1));
    std::vector<Tensor> gradients = execute_all_over(RmsNormBack(axis_, has_gamma_), std::move(dy), operands.span());
    c.give(0, std::move(gradients[0]));
    if (has_gamma_) c.give(1, std::move(gradients[1]));
  }
  if (!c.wants(0) || !c.has_grad(1)) return;
  const std::int64_t rows = rows_of(shape, axis_), columns = columns_of(shape, axis_);
  const Tensor r = c.output(1).reshape({rows, 1}), up = c.grad(1).reshape({rows, 1});
  const Tensor slope = up * r * r * r / -static_cast<double>(columns);
  c.give(0, (c.input(0).reshape({rows, columns}) * slope).reshape(shape));
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& gamma, const RmsNormOptions& options) {
  constexpr const char* kName = "rms_norm";
  require_epsilon(options.epsilon, kName);
  if (x.is_empty_handle()) refuse_disposed(x, kName, "x");
  if (is_half(x.dtype())) return rms_norm(x.cast(f32), widened(gamma), options).cast(x.dtype());
  const bool recorded = is_recorded(x);
  const RmsNorm op(resolve_axis(options.axis, x.rank(), kName), options.epsilon, !gamma.is_empty_handle(), recorded);
  NormList operands = {&x};
  operands.add_if_any(gamma);
  if (!recorded) return execute_on(op, operands.span());
  return std::move(execute_all(op, operands.span())[0]);
}

}  // namespace plimsoll
