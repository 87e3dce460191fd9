// StepPlans, declared in step_plan.h: which plan a batch gets, and when a plan is forgotten.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/graph/call_signature.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kCacheBytes = std::size_t{32} << 20;

std::size_t bytes_of(const StepPlan& plan) {
  return sizeof(StepPlan) + (plan.has_program() ? plan.program().bytes() : 0);
}

}  // namespace

StepPlans::StepPlans(Network& network) : network_(network), plans_(kCacheBytes) {}
StepPlans::~StepPlans() = default;
void StepPlans::clear() { plans_.clear(); }
void StepPlans::recount(const StepPlan& plan) { plans_.recount(plan, bytes_of(plan)); }

// Layers that have changed since then are traced again.
void StepPlans::clear_when_changed() {
  const std::lock_guard lock(mutex_);
  std::uint64_t changes = network_.changes();
  for (const LayerBase* layer : layers_) changes += layer->changes();
  if (changes == seen_changes_ && !layers_.empty()) return;
  plans_.clear();
  layers_.clear();
  seen_changes_ = network_.changes();
  network_.visit_layers([this](LayerBase& layer) {
    layers_.push_back(&layer);
    seen_changes_ += layer.changes();
  });
}

std::shared_ptr<StepPlan> StepPlans::get(StepKind kind, const Example& batch, const char* where) {
  require_batch(network_, kind, batch, where);
  CallSignature signature;
  signature.add(kind);
  signature.add(reinterpret_cast<std::uintptr_t>(&current_device()));
  for (const auto* const tensors : {&batch.inputs, &batch.targets})
    for (const Tensor& tensor : *tensors) signature.add(tensor);
  if (!batch.weights.is_empty_handle()) signature.add(batch.weights);
  if (network_.training.run_eagerly || signature.has_symbolic() || ThreadContext::current().tracer)
    return std::make_shared<StepPlan>(network_, kind);
  clear_when_changed();
  if (std::shared_ptr<StepPlan> known = plans_.find(signature.words())) return known;
  try {
    bool keep = true;
    std::shared_ptr<StepPlan> made = make(kind, batch, keep);
    if (!keep) return made;
    clear_when_changed();  // Tracing may have changed layers: states, weights of inner ones.
    const std::size_t bytes = bytes_of(*made);
    return plans_.insert(signature.words(), std::move(made), bytes);
  } catch (...) {
    forget_new_states(network_);
    throw;
  }
}

std::shared_ptr<StepPlan> StepPlans::make(StepKind kind, const Example& batch, bool& keep) {
  try {
    return std::make_shared<StepPlan>(network_, kind, BatchSpec::of(batch));
  } catch (const OutOfMemory&) {
    throw;
  } catch (const InvalidArgument&) {  // Running it directly gives the same error.
    keep = false;
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_logged_, true))
      log_message(LogLevel::info, fmt::format("model \"{}\": its steps are run directly, without a plan: {}",
                                              network_.name(), error.what()));
  }
  return std::make_shared<StepPlan>(network_, kind);
}

StepResult run_step(Network& network, StepKind kind, const Example& given, const char* where) {
  require_inputs(network, given.inputs, where);
  const auto fits = [&, i = std::size_t{0}](const Tensor& input) mutable {
    return input_dtype_for(network, i++, input.dtype()) == input.dtype();
  };
  if (std::all_of(given.inputs.begin(), given.inputs.end(), fits))
    return network.training.plans.get(kind, given, where)->run(given);
  Example batch = given;
  cast_inputs(network, batch.inputs);
  return network.training.plans.get(kind, batch, where)->run(batch);
}

}  // namespace plimsoll::internal
