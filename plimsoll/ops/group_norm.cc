#include "plimsoll/ops/group_norm.h"

#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/group_norm.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/layer_norm_operands.h"
#include "plimsoll/ops/internal/layer_norm_second_order.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// x as [items, places, groups, channels of a group]; the moments are over the second and the last axis.
NormGrid grid_of(const Shape& x, std::int64_t groups) {
  const std::int64_t channels = x.back() / groups;
  const std::int64_t places = rows_of(part_of(x, 1, x.rank()), x.rank() - 2);
  return {{x[0], places, groups, channels}, {x[0], 1, groups, 1}, {groups, channels}, Axes({1, 3}), Axes({0, 1})};
}

// Inputs x, dy, mean, rstd and, when it has one, gamma; outputs dx, dgamma, dbeta.
class GroupNormBack final : public OpOf<GroupNormBack> {
 public:
  GroupNormBack(std::int64_t groups, bool has_gamma) noexcept : groups_(groups), has_gamma_(has_gamma) {}
  const char* name() const noexcept override { return "group_norm_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    out.add(in.shape(0), in.dtype(0));
    out.add({in.shape(0).back()}, in.dtype(0));
    out.add({in.shape(0).back()}, in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return group_norm_scratch_bytes(in.shape(0), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) {
      if (run.out[1].size() > 0) std::memset(run.out[1].bytes(), 0, run.out[1].nbytes());
      if (run.out[2].size() > 0) std::memset(run.out[2].bytes(), 0, run.out[2].nbytes());
      return;
    }
    group_norm_gradient(x, groups_, has_gamma_ ? run.in[4] : ConstTensorView(), run.in[2], run.in[3], run.in[1],
                        {run.out[0], run.out[1], run.out[2]}, run.scratch);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(5) - 1}; }
  void gradient(GradientContext& c) const override {
    give_second_order(c, grid_of(c.input_shape(0), groups_), has_gamma_);
  }
  bool operator==(const GroupNormBack&) const = default;

 private:
  std::int64_t groups_;
  bool has_gamma_;
};

// Inputs: x, and gamma and beta if present. Outputs: y and, for the gradient, mean and rstd.
class GroupNorm final : public OpOf<GroupNorm> {
 public:
  GroupNorm(std::int64_t groups, double epsilon, NormInputs inputs, bool with_moments) noexcept
      : groups_(groups), epsilon_(epsilon), inputs_(inputs), with_moments_(with_moments) {}
  const char* name() const noexcept override { return "group_norm"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : inputs_.name(input); }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return group_norm_scratch_bytes(in.shape(0), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    GroupNormOutputs outputs = {run.out[0], {}, {}};
    if (with_moments_) outputs.mean = run.out[1], outputs.rstd = run.out[2];
    internal::group_norm(run.in[0], groups_, inputs_.has_gamma ? run.in[inputs_.gamma()] : ConstTensorView(),
                         inputs_.has_beta ? run.in[inputs_.beta()] : ConstTensorView(), epsilon_, outputs, run.scratch);
  }
  SavedSlots saved(SlotMask) const override {
    return {.inputs = slot(0) | (inputs_.has_gamma ? slot(inputs_.gamma()) : 0), .outputs = slot(1) | slot(2)};
  }
  void gradient(GradientContext& c) const override;
  OpFacts facts() const noexcept override { return {.has_gradient = with_moments_}; }
  std::size_t make_lean() noexcept override { return std::exchange(with_moments_, false) ? 1 : 0; }
  bool operator==(const GroupNorm&) const = default;

 private:
  std::int64_t groups_;
  double epsilon_;
  NormInputs inputs_;
  bool with_moments_;
};

void GroupNorm::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  require_floating(*this, in.dtype(0));
  const Shape& x = in.shape(0);
  require_rank_at_least(*this, x, 2);
  if (groups_ < 1 || (x.back() != kUnknownSize && x.back() % groups_ != 0))
    throw InvalidArgument(fmt::format("group_norm: {} groups, x {} has {} channels; give groups that divide them",
                                      groups_, x.to_string(), x.back()));
  require_parameters(*this, in, inputs_, {x.back()});
  out.add(x, in.dtype(0));
  if (!with_moments_) return;
  out.add({x[0], groups_}, in.dtype(0));
  out.add({x[0], groups_}, in.dtype(0));
}

void GroupNorm::gradient(GradientContext& c) const {
  if (c.has_grad(0)) {
    NormList operands = {&c.input(0), &c.grad(0), &c.output(1), &c.output(2)};
    if (inputs_.has_gamma) operands.add_if_any(c.input(inputs_.gamma()));
    std::vector<Tensor> gradients = execute_all(GroupNormBack(groups_, inputs_.has_gamma), operands.span());
    c.give(0, std::move(gradients[0]));
    if (inputs_.has_gamma) c.give(inputs_.gamma(), std::move(gradients[1]));
    if (inputs_.has_beta) c.give(inputs_.beta(), std::move(gradients[2]));
  }
  if (c.wants(0) && (c.has_grad(1) || c.has_grad(2)))
    c.give(0, moments_gradient(grid_of(c.input_shape(0), groups_), c.input(0), c.output(1), c.output(2),
                               c.has_grad(1) ? c.grad(1) : Tensor(), c.has_grad(2) ? c.grad(2) : Tensor()));
}

}  // namespace

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& gamma, const Tensor& beta,
                  const GroupNormOptions& options) {
  constexpr const char* kName = "group_norm";
  require_epsilon(options.epsilon, kName);
  if (x.is_empty_handle()) refuse_disposed(x, kName, "x");
  if (is_half(x.dtype()))
    return group_norm(x.cast(f32), groups, widened(gamma), widened(beta), options).cast(x.dtype());
  const bool recorded = is_recorded(x);
  const GroupNorm op(groups, options.epsilon, {!gamma.is_empty_handle(), !beta.is_empty_handle()}, recorded);
  NormList operands = {&x};
  operands.add_if_any(gamma);
  operands.add_if_any(beta);
  if (!recorded) return execute_on(op, operands.span());
  return std::move(execute_all(op, operands.span())[0]);
}

}  // namespace plimsoll
