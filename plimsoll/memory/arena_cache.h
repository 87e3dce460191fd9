// ArenaCache: one thread's freed blocks of one arena, by exact size, ready for reuse without a lock.
//
// A size may be in either of two slots, last freed first; a size that finds others in both takes the slot that was used
// longer ago. Cached blocks count in bytes_reserved, not in bytes_in_use, and are released under pressure. Only its
// thread touches it, between enter() and leave(), or a thread that has stopped the owner.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/meter.h"

namespace plimsoll::internal {

struct ArenaCache {
  static constexpr std::size_t kSlots = 1024;

  Meter meter;                            // Bytes in use, as part of the device's count.
  std::atomic<std::int64_t> held{0};      // Bytes this thread uses or caches: reuse leaves it unchanged.
  std::atomic<std::uint64_t> next_id{0};  // The next id in the batch of block ids this thread hands out.
  std::atomic<std::uint64_t> last_id{0};
  std::atomic<std::uint64_t> id_batches{0};
  std::atomic<std::size_t> largest{0};
  std::atomic<bool> may_hold{false};  // False: no size got a slot since the cache was drained.
  Chunk* deferred = nullptr;          // Freed chunks that take effect at the next safe point.

  static constexpr std::uint64_t kIdBatch = 4096;
  std::uint64_t allocations() const noexcept {
    return id_batches.load(std::memory_order_relaxed) * kIdBatch -
           (last_id.load(std::memory_order_relaxed) - next_id.load(std::memory_order_relaxed));
  }
  std::int64_t cached_bytes() const noexcept { return held.load(std::memory_order_relaxed) - Meter::load(meter.used); }
  void hold(std::int64_t bytes) noexcept {
    held.store(held.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  // A cached chunk of this size, or nullptr. The caller counts it as used.
  Chunk* pop(std::size_t size) noexcept {
    Slot* slot = &slots_[place(size)];
    if (slot->size != size) [[unlikely]] {
      slot = &slots_[place(size) ^ 1];
      if (slot->size != size) return nullptr;
    }
    Chunk* chunk = slot->head;
    if (!chunk) [[unlikely]]
      return nullptr;
    slot->head = chunk->link;
    return chunk;
  }

  // False when both slots hold other sizes. The caller no longer counts the chunk as used; it belongs to this thread
  // and has no budget.
  bool push(Chunk* chunk) noexcept {
    const std::size_t size = chunk->size;
    Slot* slot = &slots_[place(size)];
    if (slot->size != size) [[unlikely]] {
      slot = find_slot(size);
      if (!slot) return false;
    }
    chunk->link = slot->head;
    chunk->state = ChunkState::kCached;
    slot->head = chunk;
    return true;
  }

  // Call after push() refused this size: removes the chunks in whichever of its two slots was used longer ago and
  // returns them as a list. The caller no longer counts them as cached. push() then succeeds.
  Chunk* evict(std::size_t size) noexcept {
    Slot &home = slots_[place(size)], &other = slots_[place(size) ^ 1];
    Slot& older = home.head->label.id < other.head->label.id ? home : other;
    return std::exchange(older.head, nullptr);
  }

  // Hands every cached chunk to f; the cache is empty afterwards.
  template <class F>
  void drain(F&& f) {
    for (std::size_t word = 0; word < dirty_.size(); ++word) {
      while (dirty_[word]) {
        Slot& slot = slots_[word * 64 + static_cast<std::size_t>(std::countr_zero(dirty_[word]))];
        dirty_[word] &= dirty_[word] - 1;
        while (Chunk* chunk = slot.head) {
          slot.head = chunk->link;
          f(chunk);
        }
        slot.size = 0;
      }
    }
    held.store(Meter::load(meter.used), std::memory_order_relaxed);
    may_hold.store(false, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::size_t size = 0;
    Chunk* head = nullptr;
  };
  // The slot of this size, reusing one whose size holds no chunk if need be; nullptr when there is none.
  Slot* find_slot(std::size_t size) noexcept {
    const std::size_t home = place(size);
    if (slots_[home ^ 1].size == size) return &slots_[home ^ 1];
    for (const std::size_t at : {home, home ^ 1}) {
      if (slots_[at].head) continue;
      slots_[at].size = size;
      may_hold.store(true, std::memory_order_relaxed);
      dirty_[at / 64] |= std::uint64_t{1} << (at % 64);
      return &slots_[at];
    }
    return nullptr;
  }

  static std::size_t place(std::size_t size) noexcept {
    return static_cast<std::size_t>((size / kGranularity * 0x9E3779B97F4A7C15u) >> (64 - std::bit_width(kSlots - 1)));
  }

  std::array<std::uint64_t, kSlots / 64> dirty_{};  // Slots that may hold chunks.
  std::array<Slot, kSlots> slots_{};
};

}  // namespace plimsoll::internal
