// RecurrentLayer: SimpleRNN, LSTM and GRU, based on the operations of ops/recurrent.h.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "plimsoll/model/layers/activate.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/ops/recurrent.h"

namespace plimsoll::internal {

enum class RecurrentKind : unsigned char { kSimpleRNN, kLSTM, kGRU };

class RecurrentLayer final : public LayerBase {
 public:
  RecurrentLayer(RecurrentKind kind, std::int64_t units, const RecurrentOptions& options);

  const char* class_name() const override;
  Shapes output_shapes(const Shapes& in) const override;
  void build(const Shapes& in) override;
  std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context) override;
  Tensor output_mask(const std::vector<Tensor>&, const CallContext& context) const override {
    return options_.return_sequences ? context.mask(0) : Tensor();
  }
  void config(ConfigWriter& out) const override;

  const RecurrentOptions& options() const noexcept { return options_; }
  std::size_t num_states() const noexcept { return kind_ == RecurrentKind::kLSTM ? 2 : 1; }
  std::int64_t units() const noexcept { return units_; }
  std::shared_ptr<RecurrentLayer> copy(bool go_backwards) const;
  void reset_states();
  // States are new until a step that uses them has succeeded.
  void keep_new_states() noexcept { states_are_new_.store(false, std::memory_order_relaxed); }
  void forget_new_states() {
    if (states_are_new_.exchange(false)) reset_states();
  }

 private:
  std::int64_t gates() const noexcept {
    return kind_ == RecurrentKind::kSimpleRNN ? 1 : kind_ == RecurrentKind::kGRU ? 3 : 4;
  }
  void check_state(const Tensor& x, const std::vector<Tensor>& inputs);
  void make_bias();
  Sequence run(const Tensor& x, const SequenceOptions& options) const;
  Sequence run_with_dropout(const Tensor& x, const SequenceOptions& options);

  const RecurrentKind kind_;
  const std::int64_t units_;
  const RecurrentOptions options_;
  const LayerActivation activation_, recurrent_activation_;
  std::optional<Variable> kernel_, recurrent_kernel_, bias_;
  std::vector<Variable> states_;  // For a stateful layer, after its first call.
  std::atomic<bool> states_are_new_{false};
};

}  // namespace plimsoll::internal
