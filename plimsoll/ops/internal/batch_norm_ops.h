// The ops behind batch_norm.h.
#pragma once

#include "plimsoll/ops/internal/layer_norm_operands.h"
#include "plimsoll/ops/internal/layer_norm_second_order.h"

namespace plimsoll {

// Inputs x and what it has of gamma and beta; outputs y, mean, variance, rstd.
class BatchNormTrain final : public OpOf<BatchNormTrain> {
 public:
  BatchNormTrain(double epsilon, bool relu, NormInputs inputs) noexcept
      : epsilon_(epsilon), inputs_(inputs), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : inputs_.name(input); }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;

 private:
  double epsilon_;
  NormInputs inputs_;
  bool relu_;
};

// Inputs x, dy, mean, rstd, then what it has of gamma and y (when relu was fused); outputs dx, dgamma, dbeta.
class BatchNormBack final : public OpOf<BatchNormBack> {
 public:
  BatchNormBack(bool has_gamma, bool relu) noexcept : has_gamma_(has_gamma), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(6) - 1}; }
  void gradient(GradientContext& context) const override;

 private:
  std::size_t y() const noexcept { return has_gamma_ ? 5 : 4; }

  bool has_gamma_, relu_;
};

// Inputs x, mean, variance and what it has of gamma and beta.
class BatchNormInfer final : public OpOf<BatchNormInfer> {
 public:
  BatchNormInfer(double epsilon, bool relu, NormInputs inputs) noexcept
      : epsilon_(epsilon), inputs_(inputs), relu_(relu) {}
  const char* name() const noexcept override { return "batch_norm"; }
  std::string input_name(std::size_t input) const override;
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }

 private:
  double epsilon_;
  NormInputs inputs_;
  bool relu_;
};

}  // namespace plimsoll
