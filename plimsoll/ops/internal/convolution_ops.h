// The ops behind convolution.h: a convolution and its two gradients, each the gradient of the others.
#pragma once

#include <optional>

#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/internal/convolution_rule.h"
#include "plimsoll/ops/op_cost.h"
#include "plimsoll/ops/thrifty_op.h"

namespace plimsoll::internal {

// The cost of the multiplications between y's elements and the filter, the same for all three ops.
inline std::uint64_t convolution_cost(const Shape& y, const Shape& filter) {
  const auto channels = static_cast<std::uint64_t>(y.back());
  return channels == 0 ? 0 : multiplication_cost(y.size() / channels * filter.size());
}

// Convolutions work on parts of a batch at once, each with scratch of its own; a thrifty one on four.
template <class Derived>
class ThriftyConvolution : public OpOf<Derived>, public ThriftyOp {
 public:
  static constexpr std::int64_t kLanes = 4;
  explicit ThriftyConvolution(const ConvolutionRule& rule) noexcept : rule_(rule) {}
  std::unique_ptr<Op> with_thrift(int) const override {
    auto thrifty = std::make_unique<Derived>(static_cast<const Derived&>(*this));
    thrifty->rule_.lanes = kLanes;
    return thrifty;
  }
  bool costs_time() const noexcept override { return false; }
  bool operator==(const ThriftyConvolution&) const = default;

 protected:
  ConvolutionRule rule_;
};

// activation(convolution of x by filter + bias); inputs x, filter and, when it has one, bias. With a mask, output 1
// tells where a relu's result is above zero, in bits, and the gradient reads it in place of the result.
class Convolve final : public ThriftyConvolution<Convolve> {
 public:
  explicit Convolve(const ConvolutionRule& rule, bool has_bias = false, std::optional<UnaryOp> activation = {},
                    bool with_mask = false) noexcept
      : ThriftyConvolution(rule), activation_(activation), has_bias_(has_bias), with_mask_(with_mask) {}
  const char* name() const noexcept override { return rule_.name; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  std::string input_name(std::size_t input) const override;
  std::size_t make_lean() noexcept override { return std::exchange(with_mask_, false) ? 1 : 0; }

  const ConvolutionRule& rule() const noexcept { return rule_; }
  bool is_plain() const noexcept { return !has_bias_ && !activation_ && !with_mask_; }  // The convolution alone.
  bool operator==(const Convolve&) const = default;

 private:
  std::optional<UnaryOp> activation_;  // With a gradient only relu, sigmoid and tanh, whose results tell it.
  bool has_bias_, with_mask_;
};

// dy where the mask is set, else 0; inputs dy and mask.
class MaskSlope final : public OpOf<MaskSlope> {
 public:
  const char* name() const noexcept override { return "relu_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }
};

// dx of inputs dy and filter. Without a shape of x it is the transposed convolution, which chooses it.
class ConvolveBack final : public ThriftyConvolution<ConvolveBack> {
 public:
  explicit ConvolveBack(const ConvolutionRule& rule, const Shape& x = {}) noexcept : ThriftyConvolution(rule), x_(x) {}
  const char* name() const noexcept override;
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  std::string input_name(std::size_t input) const override;
  bool operator==(const ConvolveBack&) const = default;

 private:
  Shape x_;
};

// dfilter of inputs x and dy.
class ConvolveFilter final : public ThriftyConvolution<ConvolveFilter> {
 public:
  ConvolveFilter(const ConvolutionRule& rule, const Shape& filter) noexcept
      : ThriftyConvolution(rule), filter_(filter) {}
  const char* name() const noexcept override { return "convolution_filter_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : "dy"; }
  bool operator==(const ConvolveFilter&) const = default;

 private:
  Shape filter_;
};

}  // namespace plimsoll::internal
