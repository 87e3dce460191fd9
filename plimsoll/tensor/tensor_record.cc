#include "plimsoll/tensor/tensor_record.h"

#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll {
namespace {

// Uncounts the record; the caller drops the reference to the storage outside the gate.
Storage* end_tensor(TensorRecord& record, TensorThread& counts) noexcept {
  constexpr auto kDead = static_cast<std::uint8_t>(~TensorRecord::kLive);
  if (record.flags.fetch_and(kDead, std::memory_order_relaxed) & TensorRecord::kLive) counts.count(counts.tensors, -1);
  return record.storage.exchange(nullptr, std::memory_order_acq_rel);
}

// The same when nothing else refers to the record: without locked atomic operations.
Storage* end_unshared(TensorRecord& record, TensorThread& counts) noexcept {
  if (record.flags.load(std::memory_order_relaxed) & TensorRecord::kLive) counts.count(counts.tensors, -1);
  record.flags.store(0, std::memory_order_relaxed);
  Storage* const storage = record.storage.load(std::memory_order_acquire);
  record.storage.store(nullptr, std::memory_order_relaxed);
  return storage;
}

}  // namespace

void TensorRecord::drop(std::uint64_t before) noexcept {
  if (before >= 2 * kWeak || has(kNamed)) [[unlikely]]
    return drop_watched();
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  thread.enter();
  Storage* const storage = end_unshared(*this, counts);
  references.store(0, std::memory_order_relaxed);
  counts.push(this);
  if (!storage || storage->references_.load(std::memory_order_acquire) != 1) {
    thread.leave();
    StorageRef::adopt(storage);
  } else {
    Storage::Remains remains = storage->end(counts);
    thread.leave();
    remains.give_back();
  }
  counts.share_surplus();
}

// The same when a scope refers to the record, or it has a name.
void TensorRecord::drop_watched() noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const bool last = references.load(std::memory_order_acquire) < 2 * kWeak;  // No scope refers to it.
  StorageRef bytes;
  {
    const EnterThread inside(thread);
    bytes = StorageRef::adopt(end_tensor(*this, counts));
    drop_name(*this, counts);
    if (last) {
      references.store(0, std::memory_order_relaxed);
      counts.push(this);
    }
  }
  if (!last) release_weak();
  counts.share_surplus();
}

void TensorRecord::release_weak() noexcept {
  if (references.fetch_sub(kWeak, std::memory_order_acq_rel) >= 2 * kWeak) return;
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  {
    const EnterThread inside(thread);
    counts.push(this);
  }
  counts.share_surplus();
}

void TensorRecord::dispose() noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  StorageRef bytes;
  const EnterThread inside(thread);
  bytes = StorageRef::adopt(end_tensor(*this, counts));
}

}  // namespace plimsoll
