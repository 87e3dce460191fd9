// OptimizerUpdate: one optimizer's step of one parameter as an op: what graphs plan and Optimizer runs in place.
//
//   inputs: parameter, gradient, slots;  outputs: parameter, slots
//
// Each output may be exactly its input's memory (then nothing is copied) or memory of its own.
#pragma once

#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll {

inline constexpr std::size_t kMaxOptimizerSlots = 3;

class PLIMSOLL_API OptimizerUpdate final : public OpOf<OptimizerUpdate> {
 public:
  // `step` counts from 1.
  OptimizerUpdate(const OptimizerOptions& options, std::int64_t step) noexcept : options_(options), step_(step) {}

  // What an optimizer keeps for each parameter, and the number that fills it at first.
  struct SlotSpec {
    const char* name;
    double initial = 0;
  };
  static std::size_t num_slots(const OptimizerOptions& options) noexcept;
  static SlotSpec slot_spec(const OptimizerOptions& options, std::size_t slot) noexcept;

  const char* name() const noexcept override;
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  OpFacts facts() const noexcept override {
    return {.is_pure = true, .has_gradient = false, .overwrites = plimsoll::slot(0)};
  }
  std::string input_name(std::size_t input) const override;

 private:
  OptimizerOptions options_;
  std::int64_t step_;
};

}  // namespace plimsoll
