// The ops behind elementwise.h, for code that builds on them: gradients and passes over graphs.
#pragma once

#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/tensor/number.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// a op b.
class Binary final : public OpOf<Binary> {
 public:
  explicit Binary(BinaryOp op) noexcept : op_(op) {}
  const char* name() const noexcept override { return op_name(op_); }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override;
  BinaryOp op() const noexcept { return op_; }
  bool operator==(const Binary&) const = default;

 private:
  BinaryOp op_;
};

// x op number, or number op x.
class BinaryWithNumber final : public OpOf<BinaryWithNumber> {
 public:
  BinaryWithNumber(BinaryOp op, Number number, bool number_first) noexcept
      : number_(number), op_(op), number_first_(number_first) {}
  const char* name() const noexcept override { return op_name(op_); }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  void run_flat(DType dtype, const void* x, void* out, std::size_t size) const noexcept;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override;
  bool operator==(const BinaryWithNumber&) const = default;

 private:
  Number number_;
  BinaryOp op_;
  bool number_first_;
};

class Unary final : public OpOf<Unary> {
 public:
  explicit Unary(UnaryOp op) noexcept : op_(op) {}
  const char* name() const noexcept override { return op_name(op_); }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override;
  UnaryOp op() const noexcept { return op_; }
  bool operator==(const Unary&) const = default;

 private:
  UnaryOp op_;
};

// From x and the gradient g of leaky_relu(x, slope): x > 0 ? g : slope g.
class LeakyReluGradient final : public OpOf<LeakyReluGradient> {
 public:
  explicit LeakyReluGradient(Number slope) noexcept : slope_(slope) {}
  const char* name() const noexcept override { return op_name(TernaryOp::leaky_relu_grad); }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(0) | slot(1)}; }
  bool operator==(const LeakyReluGradient&) const = default;

 private:
  Number slope_;
};

}  // namespace plimsoll::internal
