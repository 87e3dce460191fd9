// RecurrentOp: runs a whole sequence through a recurrent layer; and its gradient.
#pragma once

#include "plimsoll/kernels/recurrent.h"
#include "plimsoll/ops/thrifty_op.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// Which of the optional operands are present. They follow x, kernel and recurrent kernel in this order.
struct RecurrentOperands {
  bool bias = false, initial_h = false, initial_c = false, mask = false;
  bool operator==(const RecurrentOperands&) const = default;
};

// Outputs: the sequence or the last output, h, for an LSTM c, and what the gradient reads when it is kept.
class RecurrentOp final : public OpOf<RecurrentOp>, public ThriftyOp {
 public:
  RecurrentOp(const RecurrentRule& options, RecurrentOperands given, bool return_sequences) noexcept
      : options_(options), given_(given), return_sequences_(return_sequences) {}
  const char* name() const noexcept override;
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  SavedSlots saved(SlotMask wanted) const override;
  void gradient(GradientContext& context) const override;
  OpFacts facts() const noexcept override { return {.has_gradient = options_.keep_for_gradient}; }
  std::size_t make_lean() noexcept override {
    return std::exchange(options_.keep_for_gradient, false) ? workspace_output() : 0;
  }
  std::string input_name(std::size_t input) const override;
  std::unique_ptr<Op> with_thrift(int level) const override;
  bool costs_time() const noexcept override { return options_.keep_for_gradient; }
  std::size_t thrifty_output() const noexcept override {
    return options_.keep_for_gradient ? workspace_output() : kNone;
  }
  bool operator==(const RecurrentOp&) const = default;

 private:
  bool is_lstm() const noexcept { return options_.cell == RecurrentCell::lstm; }
  std::size_t workspace_output() const noexcept { return is_lstm() ? 3 : 2; }
  std::size_t bias_input() const noexcept { return 3; }
  std::size_t initial_h_input() const noexcept { return bias_input() + given_.bias; }
  std::size_t initial_c_input() const noexcept { return initial_h_input() + given_.initial_h; }
  std::size_t mask_input() const noexcept { return initial_c_input() + given_.initial_c; }
  bool reads_initial_h() const noexcept { return is_lstm() && options_.unmasked && given_.initial_h; }
  void check_optional(const Specs& in, const RecurrentSizes& sizes) const;

  RecurrentRule options_;
  RecurrentOperands given_;
  bool return_sequences_;
};

// Which gradients are requested, and which inputs are present.
struct RecurrentGradientParts {
  bool x = false, kernel = false, recurrent_kernel = false, bias = false, initial_h = false, initial_c = false;
  bool reads_initial_h = false, mask = false;       // Among the inputs.
  bool d_output = false, d_h = false, d_c = false;  // The same.
  bool return_sequences = false;
  bool operator==(const RecurrentGradientParts&) const = default;
};

// Inputs: x, kernel, recurrent kernel, the workspace, and those of the parts that are there; outputs: the parts asked
// for.
class RecurrentGradient final : public OpOf<RecurrentGradient>, public ThriftyOp {
 public:
  RecurrentGradient(const RecurrentRule& options, const RecurrentGradientParts& parts) noexcept
      : options_(options), parts_(parts) {}
  const char* name() const noexcept override { return "recurrent_gradient"; }
  void infer(const Specs& in, SpecList& out) const override;
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override;
  std::uint64_t cost(const Specs& in, const SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  void gradient(GradientContext& context) const override;  // Throws Unsupported.
  std::unique_ptr<Op> with_thrift(int level) const override;
  std::size_t thrifty_input() const noexcept override { return kWorkspaceInput; }
  bool operator==(const RecurrentGradient&) const = default;

 private:
  static constexpr std::size_t kWorkspaceInput = 3;

  RecurrentRule options_;
  RecurrentGradientParts parts_;
};

}  // namespace plimsoll::internal
