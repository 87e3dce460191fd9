#include "plimsoll/tensor/make_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/device/start_hook.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/live/live_view.h"
#include "plimsoll/tensor/map_storage.h"
#include "plimsoll/tensor/scope_list.h"
#include "plimsoll/tensor/tensor_thread.h"
#include "plimsoll/tensor/trace_names.h"

namespace plimsoll::internal {

namespace {

[[maybe_unused]] const bool kNamesAreTraced = (set_trace_begin_hook(tell_trace_all_names), true);
[[maybe_unused]] const bool kLiveIsOffered = (set_runtime_start_hook(start_live_view_from_environment), true);

inline BlockLabel label_of(const ThreadContext& context, const Origin& origin, const Shape& shape, DType dtype) {
  BlockLabel label;
  label.op = origin.op;
  label.scope = context.name_scope;
  label.step = context.step;
  label.site = context.site;
  label.category = origin.category;
  label.dtype = static_cast<std::uint8_t>(dtype);
  label.rank = static_cast<std::uint8_t>(shape.rank());
  label.has_shape = 1;
  const std::size_t kept = std::min(shape.rank(), BlockLabel::kSizes);
  for (std::size_t axis = 0; axis < kept; ++axis)
    label.sizes[axis] = static_cast<std::uint32_t>(std::min<std::int64_t>(shape[axis], UINT32_MAX));
  return label;
}

// What a record refers to, prepared before entering the gate.
struct Made {
  const SharedShape* shape;
  std::uint32_t provenance;

  Made(TensorThread& counts, const ThreadContext& context, const char* op, const SharedShape* of_shape)
      : shape(of_shape), provenance(counts.number_of({op, context.name_scope, context.site})) {}
};

// Inside the gate: turns the spare record into a tensor on these bytes.
inline void begin_record(TensorRecord& record, TensorThread& counts, const ThreadContext& context, Storage* storage,
                         std::size_t offset, const Made& made, DType dtype, Category category,
                         std::uint8_t flags) noexcept {
  counts.pop_record();
  record.references.store(TensorRecord::kStrong + TensorRecord::kWeak, std::memory_order_relaxed);
  record.storage.store(storage, std::memory_order_relaxed);
  record.offset = offset;
  record.details = made.shape;
  record.provenance = made.provenance;
  record.id = counts.next_id();
  record.owner.store(nullptr, std::memory_order_relaxed);
  record.step = context.step;
  record.era = TensorRecord::newest_era.load(std::memory_order_relaxed);
  record.dtype = dtype;
  record.category = category;
  record.flags.store(static_cast<std::uint8_t>(TensorRecord::kLive | flags), std::memory_order_relaxed);
  counts.count(counts.tensors, 1);
}

}  // namespace

BlockLabel block_label(const Origin& origin, const Shape& shape, DType dtype) noexcept {
  return label_of(ThreadContext::current(), origin, shape, dtype);
}

Tensor make_tensor_on(StorageRef storage, std::size_t offset, const Shape& shape, DType dtype, const Origin& origin,
                      std::uint8_t flags) {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const ThreadContext& context = ThreadContext::current();
  if (context.scope) context.scope->make_room();  // May put back records, so it comes before one is chosen.
  TensorRecord* const record = counts.spare_record();
  const Made made(counts, context, origin.op, counts.share(shape));
  {
    const EnterThread inside(thread);
    begin_record(*record, counts, context, storage.release(), offset, made, dtype, origin.category, flags);
  }
  if (context.scope) context.scope->track(record);
  return Tensor::adopt(record);
}

// Does what Storage::take() and make_tensor_on() do, entering the gate once.
class TensorMaker {
 public:
  // `known`: the shape in the table, if some record refers to it until this returns; else nullptr.
  [[gnu::always_inline]] static inline Tensor make(const Origin& origin, const Shape& shape, const SharedShape* known,
                                                   DType dtype, Device& device) {
    const std::size_t bytes = shape.size() * size_of(dtype);
    ThreadMemory& thread = ThreadMemory::current();
    TensorThread& counts = TensorThread::of(thread);
    const ThreadContext& context = ThreadContext::current();
    Chunk* const chunk = bytes == 0 ? nullptr : device.arena().take(bytes, label_of(context, origin, shape, dtype));
    Storage* storage;  // Chosen last: under pressure the arena makes others put back storages and records.
    TensorRecord* record;
    try {
      if (context.scope) context.scope->make_room();
      storage = counts.spare_storage();
      record = counts.spare_record();
      const Made made(counts, context, origin.op, known ? known : counts.share(shape));
      const EnterThread inside(thread);
      storage->begin(counts, device, chunk, bytes);
      begin_record(*record, counts, context, storage, 0, made, dtype, origin.category, 0);
    } catch (...) {
      if (chunk) device.arena().give(chunk);
      throw;
    }
    if (context.scope) context.scope->track(record);
    return Tensor::adopt(record);
  }
  static void make_unchanging(Storage& storage) noexcept {
    storage.written_outside_.store(false, std::memory_order_relaxed);
  }
};

StorageRef wrap_unchanging(Device& device, void* memory, std::size_t bytes, std::function<void(void*)> deleter) {
  StorageRef storage = Storage::wrap(device, memory, bytes, std::move(deleter));
  TensorMaker::make_unchanging(*storage);
  return storage;
}

Tensor make_tensor(const Origin& origin, const Shape& shape, DType dtype, Device& device) {
  return TensorMaker::make(origin, shape, nullptr, dtype, device);
}

Tensor make_tensor_like(const Origin& origin, const TensorRecord& like, DType dtype, Device& device) {
  const SharedShape* const known = like.details->shared;
  return TensorMaker::make(origin, known->shape, known, dtype, device);
}

Tensor make_view(const Tensor& base, const char* op, const Shape& shape, std::size_t offset) {
  const TensorRecord* record = base.record();
  Storage* storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(base, op, "x");
  return make_tensor_on(StorageRef::share(storage), record->offset + offset, shape, record->dtype,
                        {.op = op, .category = record->category}, TensorRecord::kView);
}

void set_name(const Tensor& tensor, std::string_view name) {
  if (name.empty()) return;
  auto copy = std::make_unique<char[]>(name.size() + 1);
  std::memcpy(copy.get(), name.data(), name.size());
  copy[name.size()] = 0;
  TensorRecord& record = *tensor.record();
  auto named = record.has(TensorRecord::kNamed) ? nullptr : std::make_unique<NamedShape>();
  if (named) {
    named->shape = record.shape();
    named->shared = record.details;
  }
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  {
    const EnterThread inside(thread);
    auto bytes = static_cast<std::int64_t>(name.size() + 1);
    if (named) {
      bytes += static_cast<std::int64_t>(sizeof(NamedShape));
      named->name = copy.release();
      record.details = named.release();
      record.set(TensorRecord::kNamed);
    } else {
      char*& text = const_cast<NamedShape*>(static_cast<const NamedShape*>(record.details))->name;
      bytes -= static_cast<std::int64_t>(std::strlen(text) + 1);
      delete[] std::exchange(text, copy.release());
    }
    counts.count(counts.beside, bytes);
  }
  tell_trace_name(tensor);
}

TensorView writable(const Tensor& tensor) {
  const TensorRecord& record = *tensor.record();
  Storage& storage = *record.storage.load(std::memory_order_acquire);
  storage.note_write();  // Its recipe, if it has one, does not produce what will be written.
  return {storage.resident(), record.offset, record.dtype, record.shape()};
}

Device& current_device() { return Runtime::instance().device(""); }

Device& current_host_device() {
  Device& device = current_device();
  return device.is_host() ? device : Runtime::instance().host_device();
}

Device& device_of(const Tensor& tensor) {
  const TensorRecord* record = tensor.record();
  Storage* storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(tensor, "device", "x");
  return storage->device();
}

void require_host(const Tensor& tensor, std::string_view where) {
  const Device& device = device_of(tensor);
  if (device.is_host()) return;
  const std::string host = Runtime::instance().host_device().name();
  throw Unsupported(
      fmt::format("{}: is not offered on {}; move the operands with .to(\"{}\")", where, device.name(), host));
}

void refuse_disposed(const Tensor& tensor, std::string_view where, std::string_view argument) {
  if (tensor.is_empty_handle())
    throw InvalidArgument(fmt::format(
        "{}: {} is an empty handle, not a tensor; was it default-constructed or moved from?", where, argument));
  const std::string name = tensor.name().empty() ? "" : fmt::format(" \"{}\"", tensor.name());
  throw Disposed(
      fmt::format("{}: {} is disposed: tensor{} of shape {}, made by {}; keep() it, return it from its tidy, or "
                  "dispose of it later",
                  where, argument, name, tensor.shape().to_string(), tensor.record()->op()));
}

}  // namespace plimsoll::internal
