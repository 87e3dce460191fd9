#include "plimsoll/tensor/parked.h"

#include <atomic>
#include <span>

#include "plimsoll/base/error.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/tensor/evict/recipe.h"
#include "plimsoll/tensor/storage_external.h"
#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll::internal {
namespace {

constinit std::atomic<std::size_t> the_parked_bytes{0};

}  // namespace

void ParkedBytes::count(std::size_t bytes) noexcept {
  the_parked_bytes.fetch_add(bytes - counted, std::memory_order_relaxed);
  counted = bytes;
}

std::size_t Parking::parked_bytes() noexcept { return the_parked_bytes.load(std::memory_order_relaxed); }

bool Parking::is_own(const Storage& storage, std::uint32_t references) noexcept {
  return storage.references() == references && !storage.is_pinned() && !storage.is_wrapped() &&
         !evict::StorageAccess::value_of(storage);
}

void Parking::park(Storage& storage, SpillFile& file) { evict::StorageAccess::park(storage, file); }
ParkedBytes* Parking::bytes_of(const Storage& storage) noexcept { return evict::StorageAccess::parked(storage); }
void Parking::fill(const Storage& storage, void* to) noexcept { evict::StorageAccess::fill(storage, to); }
void Parking::exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept {
  evict::StorageAccess::exchange(storage, with);
}
bool Parking::read(const Storage& storage, void* to) {
  ParkedBytes* const parked = bytes_of(storage);
  if (!parked) return false;
  const std::lock_guard lock(parked->mutex);
  if (storage.is_resident()) return false;
  parked->slot.load({static_cast<std::byte*>(to), storage.bytes()});
  parked->slot.wait();
  return true;
}
void Parking::bring_back(Storage& storage) { evict::StorageAccess::bring_back(storage); }
StorageRef Parking::take_elsewhere(Device& device, std::size_t bytes, const BlockLabel& label,
                                   std::function<void(void*)> load) {
  return evict::StorageAccess::take_elsewhere(device, bytes, label, std::move(load));
}
bool Parking::is_elsewhere(const Storage& storage) noexcept { return evict::StorageAccess::is_elsewhere(storage); }

}  // namespace plimsoll::internal

namespace plimsoll::evict {

void StorageAccess::park(Storage& storage, SpillFile& file) {
  if (!storage.is_fixed() || storage.bytes_ == 0 || !storage.chunk_) return;
  if (!storage.external_) {
    auto external = std::make_unique<Storage::External>();
    ThreadMemory& thread = ThreadMemory::current();
    TensorThread& counts = TensorThread::of(thread);
    const EnterThread inside(thread);
    storage.external_ = external.release();
    counts.count(counts.beside, sizeof(Storage::External));
  }
  std::unique_ptr<ParkedBytes>& parked = storage.external_->parked;
  if (!parked || !parked->slot.is_of(file)) {
    auto made = std::make_unique<ParkedBytes>();
    made->slot = file.reserve(storage.bytes_);
    made->version = storage.version() - 1;  // Nothing is stored yet.
    parked = std::move(made);
  }
  if (parked->slot.stored_bytes() != storage.bytes_ || parked->version != storage.version()) {
    parked->slot.store({static_cast<const std::byte*>(storage.base_), storage.bytes_});
    parked->slot.wait();
    parked->version = storage.version();
  }
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  Chunk* chunk = nullptr;
  {
    const EnterThread inside(thread);
    chunk = std::exchange(storage.chunk_, nullptr);
    storage.external_->label = chunk->label;
    storage.base_ = nullptr;
    storage.state_.store(Storage::State::kLazy, std::memory_order_release);
    counts.count(counts.buffers, -1);
    counts.count(counts.bytes, -static_cast<std::int64_t>(storage.bytes_));
  }
  parked->count(storage.bytes_);
  storage.device_->arena().give(chunk);
}

ParkedBytes* StorageAccess::parked(const Storage& storage) noexcept {
  return storage.is_resident() || storage.is_watched() ? nullptr : storage.external_->parked.get();
}

void StorageAccess::fill(const Storage& storage, void* to) noexcept {
  const Storage::Fill& fill = storage.external_->fill;
  storage.device_->backend().fill(to, fill.pattern, fill.element_bytes, storage.bytes_);
}

void StorageAccess::exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept {
  if (!storage.external_) return;  // It was never parked and never will be.
  std::swap(storage.external_->parked, with);
  if (ParkedBytes* const now = storage.external_->parked.get()) now->count(storage.is_resident() ? 0 : storage.bytes_);
  if (with) with->count(0);
}

// Memory with the bytes that `read` writes, for a storage that nobody else makes resident meanwhile.
void StorageAccess::become_resident(Storage& storage, FunctionRef<void(std::span<std::byte>)> read) {
  Arena& arena = storage.device_->arena();
  Chunk* const chunk = arena.take(storage.bytes_, storage.external_->label);
  void* const base = arena.address(chunk);
  try {
    read({static_cast<std::byte*>(base), storage.bytes_});
  } catch (...) {
    arena.give(chunk);
    throw;
  }
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  storage.base_ = base;
  storage.chunk_ = chunk;
  storage.state_.store(Storage::State::kResident, std::memory_order_release);
  counts.count(counts.buffers, 1);
  counts.count_bytes(static_cast<std::int64_t>(storage.bytes_));
}

void StorageAccess::bring_back(Storage& storage) {
  ParkedBytes& parked = *storage.external_->parked;
  const std::lock_guard lock(parked.mutex);
  if (storage.is_resident()) return;
  become_resident(storage, [&](std::span<std::byte> bytes) {
    parked.slot.load(bytes);
    parked.slot.wait();
    parked.version = storage.version();
    parked.count(0);
  });
}

StorageRef StorageAccess::take_elsewhere(Device& device, std::size_t bytes, const BlockLabel& label,
                                         std::function<void(void*)> load) {
  StorageRef made = Storage::take_lazily(device, bytes, label, {});
  if (bytes > 0) made->external_->load = std::move(load);
  return made;
}

bool StorageAccess::is_elsewhere(const Storage& storage) noexcept {
  return !storage.is_resident() && !storage.is_watched() && storage.external_->load;
}

// Its users are ordered by whoever made it: loading may take long and call anything, so no lock is held.
void StorageAccess::load(Storage& storage) {
  become_resident(storage, [&](std::span<std::byte> bytes) { storage.external_->load(bytes.data()); });
}

}  // namespace plimsoll::evict
