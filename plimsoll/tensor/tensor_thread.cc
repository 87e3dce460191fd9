#include "plimsoll/tensor/tensor_thread.h"

#include <mutex>
#include <utility>

#include "plimsoll/device/runtime.h"
#include "plimsoll/tensor/evict/recipe.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/slabs.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

constinit thread_local ThreadContext ThreadContext::current_;

namespace {

std::atomic<std::uint64_t> next_tensor_id{1};
constexpr std::uint64_t kIdBatch = 4096;

// Memory kept for tensors outside slabs.
std::size_t other_bytes() {
  std::int64_t total = 0;
  ThreadRegistry::instance().for_each([&](const ThreadMemory& thread) {
    if (!thread.tensors) return;
    const auto& counts = *static_cast<const TensorThread*>(thread.tensors);
    total += static_cast<std::int64_t>(sizeof(TensorThread)) + counts.beside.load(std::memory_order_relaxed);
  });
  return static_cast<std::size_t>(std::max<std::int64_t>(total, 0)) + ShapeTable::instance().num_bytes() +
         Provenance::num_bytes();
}

}  // namespace

TensorThread& TensorThread::attach(ThreadMemory& thread) {
  static const bool told = [] {
    Runtime::set_tensor_hooks({.count = [] { return memory().num_tensors + memory().num_data_buffers; },
                               .slab_bytes = [] { return Slabs::instance().bytes(); },
                               .other_bytes = &other_bytes,
                               .trim = [] { return Slabs::instance().trim(); }});
    return true;
  }();
  (void)told;
  auto* made = new TensorThread;
  const std::lock_guard lock(ThreadRegistry::instance().mutex);  // Others read the threads' counts.
  thread.tensors = made;
  return *made;
}

template <class T>
void TensorThread::fetch(T* const& list, std::uint32_t& count, SlabPool<T>& pool) {
  Slabs& slabs = Slabs::instance();
  count = 0;  // The list is empty.
  for (;;) {
    {
      const std::lock_guard lock(slabs.mutex);
      while (pool.spare && count < kMostSpare / 2) push(std::exchange(pool.spare, next_of(*pool.spare)));
      if (list) return;
    }
    slabs.make_slab(pool);  // Others may take all of it before us.
  }
}

void TensorThread::fetch_records() { fetch(records_, num_records_, Slabs::instance().records); }
void TensorThread::fetch_storages() { fetch(storages_, num_storages_, Slabs::instance().storages); }

template <class T>
void TensorThread::give_surplus(T*& list, std::uint32_t& count, SlabPool<T>& pool) noexcept {
  if (count <= kMostSpare) return;
  count = 0;
  for (T* item = list; item; item = next_of(*item)) ++count;
  for (; count > kMostSpare / 2; --count) {
    T* const item = std::exchange(list, next_of(*list));
    next_of(*item) = std::exchange(pool.spare, item);
  }
}

void TensorThread::give_surplus() noexcept {
  Slabs& slabs = Slabs::instance();
  const std::lock_guard lock(slabs.mutex);
  give_surplus(records_, num_records_, slabs.records);
  give_surplus(storages_, num_storages_, slabs.storages);
}

void TensorThread::count_spares() const noexcept {
  if (records_) SlabPool<TensorRecord>::count_spares(records_->next);
  if (storages_) SlabPool<Storage>::count_spares(storages_->next_);
}

void TensorThread::take_out_spares() noexcept {
  if (records_) SlabPool<TensorRecord>::take_out(records_->next);
  if (storages_) SlabPool<Storage>::take_out(storages_->next_);
}

void TensorThread::fetch_ids() noexcept {
  next_id_ = next_tensor_id.fetch_add(kIdBatch, std::memory_order_relaxed);
  last_id_ = next_id_ + kIdBatch;
}

MemoryInfo memory() {
  std::int64_t tensors = 0, buffers = 0, bytes = 0, dropped = 0;
  ThreadRegistry::instance().for_each([&](const ThreadMemory& thread) {
    if (!thread.tensors) return;
    const auto& counts = *static_cast<const TensorThread*>(thread.tensors);
    tensors += counts.tensors.load(std::memory_order_relaxed);
    buffers += counts.buffers.load(std::memory_order_relaxed);
    bytes += counts.bytes.load(std::memory_order_relaxed);
    dropped += counts.dropped.load(std::memory_order_relaxed);
  });
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value < 0 ? 0 : value); };
  const std::int64_t spilled = evict::StorageAccess::spilled_bytes();
  return {size(tensors), size(buffers), size(bytes), size(dropped - spilled), size(spilled) + Parking::parked_bytes()};
}

}  // namespace plimsoll
