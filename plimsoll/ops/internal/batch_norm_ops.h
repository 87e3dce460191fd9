// The ops behind batch_norm.h.
#pragma once

#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/ops/internal/layer_norm_operands.h"
#include "plimsoll/ops/internal/layer_norm_second_order.h"

namespace plimsoll::internal {

inline BatchNormParameters parameters_of(const OpRun& run, const NormInputs& inputs) noexcept {
  return {inputs.has_gamma ? &run.in[inputs.gamma()] : nullptr, inputs.has_beta ? &run.in[inputs.beta()] : nullptr};
}

// Inputs: x, and gamma and beta if present; outputs: y, mean, variance, rstd.
class BatchNormTrain final : public OpOf<BatchNormTrain> {
 public:
  BatchNormTrain(double epsilon, bool relu, NormInputs inputs) noexcept
      : epsilon_(epsilon), inputs_(inputs), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : inputs_.name(input); }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  Tensor remake(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.remakes = true, .overwrites = slot(0)}; }
  bool operator==(const BatchNormTrain&) const = default;

 private:
  double epsilon_;
  NormInputs inputs_;
  bool relu_;
};

// The result of BatchNormTrain, to the bit: inputs x, mean, rstd, and gamma and beta if present.
class RepeatedBatchNorm final : public OpOf<RepeatedBatchNorm> {
 public:
  RepeatedBatchNorm(bool relu, NormInputs inputs) noexcept : inputs_(inputs), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }
  bool operator==(const RepeatedBatchNorm&) const = default;

 private:
  NormInputs inputs_;
  bool relu_;
};

// Inputs: x, dy, mean, rstd, then gamma if present and, when relu was fused, beta; outputs: dx, dgamma, dbeta.
class BatchNormBack final : public OpOf<BatchNormBack> {
 public:
  BatchNormBack(bool relu, NormInputs inputs) noexcept : inputs_(inputs), relu_(relu) { inputs_.first = 4; }
  const char* name() const noexcept override { return "batch_norm_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(6) - 1}; }
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(1)}; }
  bool operator==(const BatchNormBack&) const = default;

 private:
  NormInputs inputs_;
  bool relu_;
};

// Inputs: x, mean, variance, and gamma and beta if present.
class BatchNormInfer final : public OpOf<BatchNormInfer> {
 public:
  BatchNormInfer(double epsilon, bool relu, NormInputs inputs) noexcept
      : epsilon_(epsilon), inputs_(inputs), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm"; }
  std::string input_name(std::size_t input) const override;
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }

  double epsilon() const noexcept { return epsilon_; }
  bool relu() const noexcept { return relu_; }
  const NormInputs& inputs() const noexcept { return inputs_; }
  bool operator==(const BatchNormInfer&) const = default;

 private:
  double epsilon_;
  NormInputs inputs_;
  bool relu_;
};

}  // namespace plimsoll::internal
