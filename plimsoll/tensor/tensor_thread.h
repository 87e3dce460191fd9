// TensorThread: one thread's spare records and storages, and its share of the counts behind memory().
//
// It belongs to ThreadMemory and is passed on with it when the thread ends. Spare records may come from any thread: a
// dropped record goes to the dropping thread, and a thread's surplus is shared.
// Written by its thread inside the gate; counts may be read by anyone at any time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <utility>

#include "plimsoll/device/device.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll::internal {

template <class T>
class SlabPool;

class TensorThread {
 public:
  static TensorThread& of(ThreadMemory& thread) {
    if (!thread.tensors) [[unlikely]]
      return attach(thread);
    return *static_cast<TensorThread*>(thread.tensors);
  }

  // A spare record, for the caller to fill inside the gate; dropping anything before that changes which one it is.
  // Throws std::bad_alloc.
  TensorRecord* spare_record() {
    if (!records_) [[unlikely]]
      fetch_records();
    return records_;
  }
  Storage* spare_storage() {
    if (!storages_) [[unlikely]]
      fetch_storages();
    return storages_;
  }
  // Inside the gate: takes the record that spare_record() returned; puts one back.
  void pop_record() noexcept {
    records_ = records_->next;
    --num_records_;
  }
  void pop_storage() noexcept {
    storages_ = storages_->next_;
    --num_storages_;
  }
  void push(TensorRecord* record) noexcept {
    record->next = records_;
    records_ = record;
    ++num_records_;
  }
  void push(Storage* storage) noexcept {
    storage->next_ = storages_;
    storages_ = storage;
    ++num_storages_;
  }
  // Call outside the gate, after a push.
  void share_surplus() noexcept {
    if (num_records_ > kMostSpare || num_storages_ > kMostSpare) [[unlikely]]
      give_surplus();
  }

  // The shape that a new record will refer to. Call it last before the gate: the result stays valid only until the next
  // call. Throws std::bad_alloc.
  const SharedShape* share(const Shape& shape) {
    std::size_t hash = shape.rank();
    for (const std::int64_t size : shape) hash = hash * 31 + static_cast<std::size_t>(size);
    const SharedShape*& place = shapes_[hash * 0x9E3779B97F4A7C15u >> (64 - kPlaceBits)];
    if (!place || !(place->shape == shape)) [[unlikely]]
      ShapeTable::instance().find(shape, place);
    return place;
  }
  std::uint32_t number_of(const Provenance& made) {
    const std::size_t hash = reinterpret_cast<std::uintptr_t>(made.op) ^
                             (reinterpret_cast<std::uintptr_t>(made.scope) << 8) ^ (std::size_t{made.site} << 20);
    Numbered& place = provenances_[hash * 0x9E3779B97F4A7C15u >> (64 - kPlaceBits)];
    if (!(place.made == made)) [[unlikely]]
      place = {made, Provenance::number_of(made)};
    return place.number;
  }
  void mark_shapes() const noexcept {  // Requires the lock of the table; for a sweep.
    for (const SharedShape* shape : shapes_)
      if (shape) shape->is_used = true;
  }

  // For Slabs::trim(), while this thread is stopped. The first of each list stays: spare_record() may have returned it.
  void count_spares() const noexcept;
  void take_out_spares() noexcept;

  std::uint64_t next_id() noexcept {
    if (next_id_ == last_id_) [[unlikely]]
      fetch_ids();
    return next_id_++;
  }

  void count(std::atomic<std::int64_t>& counter, std::int64_t change) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }
  void count_bytes(std::int64_t taken) noexcept {
    count(bytes, taken);
    most_bytes = std::max(most_bytes, bytes.load(std::memory_order_relaxed));
  }
  std::atomic<std::int64_t> tensors{0}, buffers{0}, bytes{0};
  std::atomic<std::int64_t> dropped{0};  // Bytes of dropped storages.
  std::atomic<std::int64_t> beside{0};   // Bytes of names and of the data that only few storages have.
  std::int64_t most_bytes = 0;           // Largest `bytes`, for profiles of this thread, which reset it.

 private:
  static constexpr std::uint32_t kMostSpare = 16384;  // The most spare items a thread keeps.
  static constexpr int kPlaceBits = 6;
  struct Numbered {
    Provenance made;
    std::uint32_t number = 0;
  };

  static TensorThread& attach(ThreadMemory& thread);
  void fetch_records();
  void fetch_storages();
  template <class T>
  void fetch(T* const& list, std::uint32_t& count, SlabPool<T>& pool);
  template <class T>
  static void give_surplus(T*& list, std::uint32_t& count, SlabPool<T>& pool) noexcept;
  void fetch_ids() noexcept;
  void give_surplus() noexcept;

  TensorRecord* records_ = nullptr;
  Storage* storages_ = nullptr;
  std::uint32_t num_records_ = 0, num_storages_ = 0;  // Too high after a trim, which does not correct them.
  std::uint64_t next_id_ = 0, last_id_ = 0;
  std::array<const SharedShape*, 1 << kPlaceBits> shapes_{};  // Recently used, by hash; written under the table's lock.
  std::array<Numbered, 1 << kPlaceBits> provenances_{};
};

// Adds bytes that a layer above keeps in addition to tensors, such as nodes of tapes and graphs, to memory_overhead();
// a negative number subtracts. Any thread may subtract what another added.
inline void count_overhead(std::int64_t bytes) {
  TensorThread& counts = TensorThread::of(ThreadMemory::current());
  counts.count(counts.beside, bytes);
}

// Inside the gate: a record that ends loses its name.
inline void drop_name(TensorRecord& record, TensorThread& counts) noexcept {
  if (!record.has(TensorRecord::kNamed)) return;
  const auto* const named = static_cast<const NamedShape*>(record.details);
  record.clear(TensorRecord::kNamed);
  record.details = named->shared;
  counts.count(counts.beside, -static_cast<std::int64_t>(sizeof(NamedShape) + std::strlen(named->name) + 1));
  delete[] named->name;
  delete named;
}

}  // namespace plimsoll::internal

namespace plimsoll {

inline void Storage::begin(TensorThread& counts, Device& device, Chunk* chunk, std::size_t bytes) noexcept {
  counts.pop_storage();
  base_ = chunk ? device.arena().address(chunk) : nullptr;
  chunk_ = chunk;
  device_ = &device;
  bytes_ = bytes;
  references_.store(1, std::memory_order_relaxed);
  version_.store(0, std::memory_order_relaxed);
  external_ = nullptr;
  written_outside_.store(false, std::memory_order_relaxed);
  state_.store(State::kResident, std::memory_order_release);
  counts.count(counts.buffers, 1);
  counts.count_bytes(static_cast<std::int64_t>(bytes));
}

inline Storage::Remains Storage::end(TensorThread& counts) noexcept {
  if (is_fixed()) {
    counts.count(counts.buffers, -1);
    if (chunk_) counts.count(counts.bytes, -static_cast<std::int64_t>(bytes_));
  }
  state_.store(State::kSpare, std::memory_order_relaxed);
  const Remains remains{device_, chunk_, external_};
  counts.push(this);
  return remains;
}

}  // namespace plimsoll
