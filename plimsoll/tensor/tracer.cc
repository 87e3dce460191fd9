#include "plimsoll/tensor/tracer.h"

#include <fmt/format.h>

#include <cstddef>
#include <new>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/scope_list.h"
#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll {
namespace {

// Takes the place of a profile while there is a tracer, so that fast paths, which check only for a profile, leave
// operations to the code that also checks for a tracer.
class Detour final : public OpObserver {
  void ran(const Op&, std::span<const Tensor* const>, std::span<const Tensor>, std::int64_t) override {}
};

// Never destroyed, and made without the heap: callers must not fail.
Detour& detour() noexcept {
  alignas(Detour) static std::byte place[sizeof(Detour)];
  static Detour& instance = *new (place) Detour;
  return instance;
}

Storage* storage_of(const Tensor& tensor) noexcept {
  const TensorRecord* record = tensor.record();
  return record ? record->storage.load(std::memory_order_acquire) : nullptr;
}

}  // namespace

Tracer::~Tracer() = default;

bool is_symbolic(const Tensor& tensor) noexcept {
  const Storage* storage = storage_of(tensor);
  return storage && storage->is_symbolic();
}

const SymbolicValue& symbolic_value(const Tensor& tensor) { return storage_of(tensor)->symbolic(); }

std::shared_ptr<Tracer> tracer_of(const Tensor& tensor) {
  std::shared_ptr<Tracer> tracer = symbolic_value(tensor).tracer.lock();
  if (!tracer)
    throw FailedPrecondition(
        fmt::format("{}: the graph it belongs to is gone; keep the Graph while its tensors are used, and build it "
                    "again after a reset",
                    tensor.name().empty() ? "symbolic tensor" : fmt::format("symbolic tensor \"{}\"", tensor.name())));
  return tracer;
}

std::shared_ptr<Tracer> tracer_for(std::span<const Tensor* const> inputs) {
  if (Tracer* const tracer = ThreadContext::current().tracer) return tracer->shared_from_this();
  for (const Tensor* input : inputs)
    if (is_symbolic(*input)) return tracer_of(*input);
  return nullptr;
}

Tensor make_symbolic(SymbolicValue value, Device& device, const SymbolicSpec& spec) {
  return make_symbolic_on(Storage::symbolic(device, std::move(value)), spec);
}

Tensor make_symbolic_on(StorageRef storage, const SymbolicSpec& spec) {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const ThreadContext& context = ThreadContext::current();
  if (context.scope) context.scope->make_room();
  TensorRecord* const record = counts.spare_record();
  const std::uint32_t provenance = counts.number_of({spec.op, context.name_scope, context.site});
  const SharedShape* const shape = counts.share(spec.shape);
  {
    const EnterThread inside(thread);
    counts.pop_record();
    record->references.store(TensorRecord::kStrong + TensorRecord::kWeak, std::memory_order_relaxed);
    record->storage.store(storage.release(), std::memory_order_relaxed);
    record->offset = 0;
    record->details = shape;
    record->provenance = provenance;
    record->id = spec.id ? spec.id : counts.next_id();
    record->owner.store(nullptr, std::memory_order_relaxed);
    record->step = context.step;
    record->dtype = spec.dtype;
    record->category = context.category;
    record->flags.store(static_cast<std::uint8_t>(spec.flags & ~TensorRecord::kLive), std::memory_order_relaxed);
  }
  if (context.scope) context.scope->track(record);
  return Tensor::adopt(record);
}

TraceWith::TraceWith(Tracer* tracer) noexcept : before_(ThreadContext::current()) {
  ThreadContext& context = ThreadContext::current();
  context.tracer = tracer;
  context.interceptor = nullptr;
  context.observer = tracer ? &detour() : nullptr;
}

TraceWith::~TraceWith() {
  ThreadContext& context = ThreadContext::current();
  context.tracer = before_.tracer;
  context.interceptor = before_.interceptor;
  context.observer = before_.observer;
}

}  // namespace plimsoll
