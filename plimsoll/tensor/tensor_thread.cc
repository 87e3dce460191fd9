#include "plimsoll/tensor/tensor_thread.h"

#include <mutex>

#include "plimsoll/device/runtime.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/slabs.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

constinit thread_local ThreadContext ThreadContext::current_;

namespace {

std::atomic<std::uint64_t> next_tensor_id{1};
constexpr std::uint64_t kIdBatch = 4096;

}  // namespace

Slabs& Slabs::instance() {
  static auto* slabs = new Slabs;
  return *slabs;
}

TensorThread& TensorThread::attach(ThreadMemory& thread) {
  static const bool told = [] {
    Runtime::set_tensor_count([] { return memory().num_tensors + memory().num_data_buffers; });
    return true;
  }();
  (void)told;
  auto* made = new TensorThread;
  const std::lock_guard lock(ThreadRegistry::instance().mutex);  // Others look through the threads' counts.
  thread.tensors = made;
  return *made;
}

void TensorThread::fetch_records() {
  Slabs& slabs = Slabs::instance();
  const std::lock_guard lock(slabs.mutex);
  if (!slabs.spare_records) {
    auto slab = std::make_unique<TensorRecord[]>(kSlab);
    slabs.records.push_back({std::move(slab), kSlab});
    TensorRecord* const items = slabs.records.back().items.get();
    for (std::uint32_t i = 0; i < kSlab; ++i) items[i].next = std::exchange(slabs.spare_records, &items[i]);
  }
  while (slabs.spare_records && num_records_ < kMostSpare / 2)
    push(std::exchange(slabs.spare_records, slabs.spare_records->next));
}

void TensorThread::fetch_storages() {
  Slabs& slabs = Slabs::instance();
  const std::lock_guard lock(slabs.mutex);
  if (!slabs.spare_storages) {
    auto slab = std::make_unique<Storage[]>(kSlab);
    slabs.storages.push_back({std::move(slab), kSlab});
    Storage* const items = slabs.storages.back().items.get();
    for (std::uint32_t i = 0; i < kSlab; ++i) items[i].next_ = std::exchange(slabs.spare_storages, &items[i]);
  }
  while (slabs.spare_storages && num_storages_ < kMostSpare / 2)
    push(std::exchange(slabs.spare_storages, slabs.spare_storages->next_));
}

void TensorThread::give_surplus() noexcept {
  Slabs& slabs = Slabs::instance();
  const std::lock_guard lock(slabs.mutex);
  for (; num_records_ > kMostSpare / 2; --num_records_) {
    TensorRecord* record = std::exchange(records_, records_->next);
    record->next = std::exchange(slabs.spare_records, record);
  }
  for (; num_storages_ > kMostSpare / 2; --num_storages_) {
    Storage* storage = std::exchange(storages_, storages_->next_);
    storage->next_ = std::exchange(slabs.spare_storages, storage);
  }
}

void TensorThread::fetch_ids() noexcept {
  next_id_ = next_tensor_id.fetch_add(kIdBatch, std::memory_order_relaxed);
  last_id_ = next_id_ + kIdBatch;
}

MemoryInfo memory() {
  std::int64_t tensors = 0, buffers = 0, bytes = 0;
  ThreadRegistry::instance().for_each([&](const ThreadMemory& thread) {
    if (!thread.tensors) return;
    const auto& counts = *static_cast<const TensorThread*>(thread.tensors);
    tensors += counts.tensors.load(std::memory_order_relaxed);
    buffers += counts.buffers.load(std::memory_order_relaxed);
    bytes += counts.bytes.load(std::memory_order_relaxed);
  });
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value < 0 ? 0 : value); };
  return {size(tensors), size(buffers), size(bytes)};
}

}  // namespace plimsoll
