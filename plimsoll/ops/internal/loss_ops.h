// RowLoss: an elementwise loss, its mean over rows and the reduction over them in one pass; and its gradient.
#pragma once

#include "plimsoll/ops/loss.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

enum class RowLossKind : unsigned char { squared, absolute, huber, sigmoid };

struct RowLossRule {
  RowLossKind kind;
  Reduction reduction;
  double delta;
  const char* name;
  bool operator==(const RowLossRule&) const = default;
};

// Inputs: targets, predictions.
class RowLoss final : public OpOf<RowLoss> {
 public:
  explicit RowLoss(const RowLossRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return rule_.name; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1)}; }
  void gradient(GradientContext& context) const override;
  std::string input_name(std::size_t input) const override { return input == 0 ? "targets" : "predictions"; }
  bool operator==(const RowLoss&) const = default;

 private:
  RowLossRule rule_;
};

// Inputs: targets, predictions, the gradient of the loss. Output: the gradient of the predictions.
class RowLossGradient final : public OpOf<RowLossGradient> {
 public:
  explicit RowLossGradient(const RowLossRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return "loss_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(1), in.dtype(1)); }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1) | slot(2)}; }
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(1)}; }
  bool operator==(const RowLossGradient&) const = default;

 private:
  RowLossRule rule_;
};

}  // namespace plimsoll::internal
