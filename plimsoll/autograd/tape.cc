#include "plimsoll/autograd/tape.h"

#include <fmt/format.h>

#include "plimsoll/autograd/backward.h"
#include "plimsoll/autograd/tape_record.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {

GradientTape::GradientTape(TapeOptions options)
    : options_(options), thread_(&ThreadContext::current()), record_(TapeRecord::obtain()) {
  ThreadContext& context = ThreadContext::current();
  outer = std::exchange(context.interceptor, this);
  enrol();
  if (options_.persistent) trace_opened("tape", this, true);
}

GradientTape::~GradientTape() {
  retire();
  if (options_.persistent) trace_closed("tape", this);
  if (!stopped_ && !leave()) [[unlikely]]
    refuse_other_thread("GradientTape");
  TapeRecord::give_back(std::move(record_));
}

bool GradientTape::leave() noexcept {
  Interceptor** place = &ThreadContext::current().interceptor;
  while (*place && *place != this) place = &(*place)->outer;
  if (!*place) return false;
  *place = outer;
  return true;
}

void GradientTape::stop() {
  require_own_thread("stop");
  if (stopped_) return;
  leave();
  outer = nullptr;
  stopped_ = true;
}

void GradientTape::require_own_thread(const char* where) const {
  if (thread_ != &ThreadContext::current()) [[unlikely]]
    throw FailedPrecondition(fmt::format(
        "{}: this tape was made by another thread, whose operations alone it sees; use it there, or make one here",
        where));
}

void GradientTape::watch(const Tensor& tensor) {
  require_own_thread("watch");
  if (tensor.is_empty_handle() || tensor.is_disposed()) refuse_disposed(tensor, "watch", "the tensor");
  if (!is_floating(tensor.dtype()))
    throw InvalidArgument(fmt::format("watch: a tensor of {} has no gradient; watch one of floats, or cast it first",
                                      dtype_name(tensor.dtype())));
  record_->add_slot(tensor.id());
}

void GradientTape::executed(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  if (outer) outer->executed(op, inputs, outputs);
  if (paused_ || used_) return;
  record_->add(op, inputs, outputs);
}

bool GradientTape::watches(std::span<const Tensor* const> inputs) const {
  if (outer && outer->watches(inputs)) return true;
  if (paused_ || used_) return false;
  for (const Tensor* input : inputs)
    if (input->record()->has(TensorRecord::kTrainable) || record_->find(input->id()) != kNoSlot) return true;
  return false;
}

Tensor GradientTape::gradient(const Tensor& target, const Tensor& source) {
  return std::move(gradient(target, std::span<const Tensor>(&source, 1))[0]);
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, std::initializer_list<Tensor> sources) {
  return gradient(target, std::span<const Tensor>(sources.begin(), sources.size()));
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Tensor>& sources) {
  return gradient(target, std::span<const Tensor>(sources));
}
std::vector<Tensor> GradientTape::gradient(const Tensor& target, const std::vector<Variable>& sources) {
  const std::vector<Tensor> values(sources.begin(), sources.end());
  return gradient(target, std::span<const Tensor>(values));
}

std::vector<Tensor> GradientTape::gradient(const Tensor& target, std::span<const Tensor> sources) {
  require_own_thread("gradient");
  if (used_)
    throw FailedPrecondition(
        "gradient: this tape has already computed a gradient and freed what it recorded; make it persistent to use it "
        "again");
  if (target.is_empty_handle() || target.is_disposed()) refuse_disposed(target, "gradient", "the target");
  if (!is_floating(target.dtype()))
    throw InvalidArgument(
        fmt::format("gradient: the target is of {}; only floats have gradients", dtype_name(target.dtype())));
  struct Resume {  // Also when an operation throws.
    GradientTape& tape;
    ~Resume() {
      tape.paused_ = false;
      if (!tape.options_.persistent) tape.record_->clear();
    }
  } resume{*this};
  paused_ = true;
  used_ = !options_.persistent;
  const CategoryGuard gradients(Category::kGradients);
  Interceptor* const innermost = ThreadContext::current().interceptor;
  const InterceptWith others(innermost == this ? outer : innermost);
  return run_backward(*record_, target, sources, options_.persistent);
}

void GradientTape::reset() {
  require_own_thread("reset");
  record_->clear();
  used_ = false;
}

std::string GradientTape::describe() const { return options_.persistent ? "persistent tape" : "tape"; }

void GradientTape::visit_held(Visit f) const {
  for (const TapeNode& node : record_->nodes())
    for (std::uint32_t i = 0; i < node.inputs + node.outputs; ++i) {
      const TapeValue& value = record_->values()[node.first_value + i];
      if (value.saved) f(*value.saved, node.op->name());
    }
}

WithoutTapes::WithoutTapes() noexcept : unseen_(nullptr) {}
WithoutTapes::~WithoutTapes() = default;

}  // namespace plimsoll
