// The ops behind pooling.h. MaxPool's gradient is MaxPoolBack, whose gradient is MaxPoolTake, and so on; AveragePool
// and AveragePoolBack are each other's gradients.
#pragma once

#include "plimsoll/kernels/pooling.h"
#include "plimsoll/ops/internal/convolution_rule.h"

namespace plimsoll::internal {

// The attributes of a pooling, and the shapes that follow from them.
struct PoolRule {
  const char* name;
  std::size_t axes;  // Of images: 2; of sequences: 1.
  SpatialSize size, strides;
  PaddingRule padding;

  Shape output_shape(const Shape& x) const;  // Throws InvalidArgument. Unknown sizes stay unknown.
  Pooling kernel(const Shape& x) const;      // Requires a known shape.
  Shape image(const Shape& shape) const;     // With a height of 1 when it has none.
  bool operator==(const PoolRule&) const = default;
};

// Output 0: the maxima. With positions, output 1: where they are, packed bytes.
class MaxPool final : public OpOf<MaxPool> {
 public:
  MaxPool(const PoolRule& rule, bool with_positions) noexcept : rule_(rule), with_positions_(with_positions) {}
  const char* name() const noexcept override { return rule_.name; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.outputs = slot(1)}; }
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.has_gradient = with_positions_}; }
  std::size_t make_lean() noexcept override { return std::exchange(with_positions_, false) ? 1 : 0; }
  bool operator==(const MaxPool&) const = default;

 private:
  PoolRule rule_;
  bool with_positions_;
};

// Inputs dy and positions.
class MaxPoolBack final : public OpOf<MaxPoolBack> {
 public:
  MaxPoolBack(const PoolRule& rule, const Shape& x) noexcept : rule_(rule), x_(x) {}
  const char* name() const noexcept override { return "max_pool_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& context) const override;
  bool operator==(const MaxPoolBack&) const = default;

 private:
  PoolRule rule_;
  Shape x_;
};

// Inputs x and positions: the elements of x at the positions.
class MaxPoolTake final : public OpOf<MaxPoolTake> {
 public:
  explicit MaxPoolTake(const PoolRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return "max_pool_take"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(rule_.output_shape(in.shape(0)), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& context) const override;
  bool operator==(const MaxPoolTake&) const = default;

 private:
  PoolRule rule_;
};

class AveragePool final : public OpOf<AveragePool> {
 public:
  explicit AveragePool(const PoolRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return rule_.name; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  void gradient(GradientContext& context) const override;
  bool operator==(const AveragePool&) const = default;

 private:
  PoolRule rule_;
};

// Input dy.
class AveragePoolBack final : public OpOf<AveragePoolBack> {
 public:
  AveragePoolBack(const PoolRule& rule, const Shape& x) noexcept : rule_(rule), x_(x) {}
  const char* name() const noexcept override { return "average_pool_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  void gradient(GradientContext& context) const override;
  bool operator==(const AveragePoolBack&) const = default;

 private:
  PoolRule rule_;
  Shape x_;
};

}  // namespace plimsoll::internal
