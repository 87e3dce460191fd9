// OptimizerUpdate: one optimizer step of one parameter as an op, which graphs plan and Optimizer runs in place.
//
//   inputs: parameter, gradient, slots;  outputs: parameter, slots
//
// Each output may be exactly its input's memory (then nothing is copied) or memory of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

inline constexpr std::size_t kMaxOptimizerSlots = 3;

class PLIMSOLL_API OptimizerUpdate final : public OpOf<OptimizerUpdate> {
 public:
  // `step` counts from 1.
  OptimizerUpdate(const OptimizerOptions& options, std::int64_t step) noexcept : options_(options), step_(step) {}

  // The state of each parameter by name, and its initial value.
  struct SlotSpec {
    const char* name;
    double initial = 0;
  };
  static std::size_t num_slots(const OptimizerOptions& options) noexcept;
  static SlotSpec slot_spec(const OptimizerOptions& options, std::size_t slot) noexcept;

  const char* name() const noexcept override;
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override;
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override;
  OpFacts facts() const noexcept override {
    return {.is_pure = true, .has_gradient = false, .overwrites = plimsoll::slot(0)};
  }
  std::string input_name(std::size_t input) const override;

 private:
  OptimizerOptions options_;
  std::int64_t step_;
};

// What updates in a graph read when they run: the options at that time, and the number of steps taken before.
struct OptimizerNow : RunEffect {
  OptimizerOptions options;
  std::int64_t step = 0;
};

// OptimizerUpdate with the optimizer's state at the time the graph runs; the `nth` of its steps in that run, from 0.
class PLIMSOLL_API ScheduledUpdate final : public OpOf<ScheduledUpdate> {
 public:
  ScheduledUpdate(std::shared_ptr<OptimizerNow> now, std::size_t nth) : now_(std::move(now)), nth_(nth) {}
  const std::shared_ptr<OptimizerNow>& effect() const noexcept { return now_; }
  std::size_t nth() const noexcept { return nth_; }

  const char* name() const noexcept override { return at(0).name(); }
  void infer(const Specs& in, SpecList& out) const override { at(0).infer(in, out); }
  void run(const OpRun& run) const noexcept override { now().run(run); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override { return now().launch(queue, run); }
  OpFacts facts() const noexcept override { return {.is_pure = false, .has_gradient = false}; }
  std::string input_name(std::size_t input) const override { return at(0).input_name(input); }

 private:
  OptimizerUpdate at(std::int64_t step) const noexcept { return {now_->options, step}; }
  OptimizerUpdate now() const noexcept { return at(now_->step + static_cast<std::int64_t>(nth_) + 1); }

  std::shared_ptr<OptimizerNow> now_;
  std::size_t nth_;
};

}  // namespace plimsoll::internal
