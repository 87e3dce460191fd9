// Slabs: the memory of tensor records and storages, for walks over the ledger, and the spare ones that belong to no
// thread.
//
//   Slabs& slabs = Slabs::instance();
//   slabs.records.make_slab();                     // one more slab of spare records
//   slabs.records.for_each([](TensorRecord& record) { ... });
//   slabs.trim();                                  // returns slabs without a tensor to the system
//
// Items never move. A slab is 64 KiB; 63 of them and a page of counts form one region of addresses, aligned so that an
// item's slab is found from its address. Slabs count in the memory_overhead() of the first CPU device, and in its limit
// when the program asked for that (config::set_charge_overhead).
// Thread safety: `mutex` guards everything but trim(), make_slab() and bytes(), which take it themselves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll::internal {

inline constexpr std::size_t kSlabBytes = 64_KiB;
inline constexpr std::size_t kSlabsPerRegion = 63;  // The first 64 KiB of a region hold its counts, in one page.
inline constexpr std::size_t kRegionBytes = (kSlabsPerRegion + 1) * kSlabBytes;

// One region of addresses; stored at its own start.
struct SlabRegion {
  struct Slab {
    std::uint32_t spare = 0;  // Counted by trim().
    bool in_use = false;      // It has pages, and items.
  };
  std::array<Slab, kSlabsPerRegion> slabs;
  std::size_t used_slabs = 0;

  void* slab(std::size_t number) noexcept { return reinterpret_cast<std::byte*>(this) + (number + 1) * kSlabBytes; }
  static SlabRegion& of(const void* item) noexcept {
    return *reinterpret_cast<SlabRegion*>(reinterpret_cast<std::uintptr_t>(item) & ~(kRegionBytes - 1));
  }
  static Slab& slab_of(const void* item) noexcept {
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(item) & (kRegionBytes - 1);
    return of(item).slabs[place / kSlabBytes - 1];
  }
  static SlabRegion* map();  // Throws OutOfMemory.
  void unmap() noexcept;
  void release(std::size_t number) noexcept;  // Returns its pages to the system.
};

// The slabs of one type, whose items are linked by next_of().
template <class T>
class SlabPool {
 public:
  static constexpr std::size_t kItems = kSlabBytes / sizeof(T);

  T* spare = nullptr;  // A list; they belong to no thread.

  // Requires the lock. Its items become spare.
  void add_slab() {
    SlabRegion& region = region_with_room();
    std::size_t number = 0;
    while (region.slabs[number].in_use) ++number;
    region.slabs[number].in_use = true;
    ++region.used_slabs;
    ++used_slabs_;
    T* const items = static_cast<T*>(region.slab(number));
    for (std::size_t i = kItems; i-- > 0;) next_of(*::new (items + i) T) = std::exchange(spare, items + i);
  }

  template <class F>
  void for_each(F&& f) {
    for (SlabRegion* region : regions_)
      for (std::size_t number = 0; number < kSlabsPerRegion; ++number) {
        if (!region->slabs[number].in_use) continue;
        T* const items = static_cast<T*>(region->slab(number));
        for (std::size_t i = 0; i < kItems; ++i) f(items[i]);
      }
  }

  // Two steps over every list of spare items: count them, then take out those whose slab has no others.
  static void count_spares(T* list) noexcept {
    for (T* item = list; item; item = next_of(*item)) ++SlabRegion::slab_of(item).spare;
  }
  static void take_out(T*& list) noexcept {
    for (T** link = &list; *link;) {
      T* const item = *link;
      if (SlabRegion::slab_of(item).spare < kItems)
        link = &next_of(*item);
      else
        *link = next_of(*item);
    }
  }
  // Afterwards: releases slabs all of whose items were counted. Returns their bytes.
  std::size_t release_counted() noexcept {
    std::size_t bytes = 0;
    for (SlabRegion*& region : regions_) {
      for (std::size_t number = 0; number < kSlabsPerRegion; ++number) {
        SlabRegion::Slab& slab = region->slabs[number];
        if (slab.in_use && std::exchange(slab.spare, 0) == kItems) {
          T* const items = static_cast<T*>(region->slab(number));
          for (std::size_t i = 0; i < kItems; ++i) items[i].~T();
          region->release(number);
          slab.in_use = false;
          --region->used_slabs;
          --used_slabs_;
          bytes += kSlabBytes;
        }
      }
      if (region->used_slabs == 0) std::exchange(region, nullptr)->unmap();
    }
    std::erase(regions_, nullptr);
    open_ = nullptr;
    return bytes;
  }

  std::size_t bytes() const noexcept { return used_slabs_ * kSlabBytes; }

 private:
  SlabRegion& region_with_room() {
    if (open_ && open_->used_slabs < kSlabsPerRegion) return *open_;
    open_ = nullptr;
    if (used_slabs_ < regions_.size() * kSlabsPerRegion)
      for (SlabRegion* region : regions_)
        if (region->used_slabs < kSlabsPerRegion) open_ = region;
    if (open_) return *open_;
    regions_.reserve(regions_.size() + 1);
    return *(open_ = regions_.emplace_back(SlabRegion::map()));
  }

  std::vector<SlabRegion*> regions_;
  SlabRegion* open_ = nullptr;  // The region that was last found to have room.
  std::size_t used_slabs_ = 0;
};

}  // namespace plimsoll::internal

namespace plimsoll {  // Where SlabPool looks for them: beside the types they read.
inline TensorRecord*& next_of(TensorRecord& record) noexcept { return record.next; }
inline Storage*& next_of(Storage& storage) noexcept { return storage.next_; }
}  // namespace plimsoll

namespace plimsoll::internal {

struct Slabs {
  static Slabs& instance();  // Never destroyed.

  std::mutex mutex;  // Taken before those of arenas and threads.
  SlabPool<TensorRecord> records;
  SlabPool<Storage> storages;

  // Adds a slab, counted as overhead. Throws OutOfMemory. Takes the lock.
  template <class T>
  void make_slab(SlabPool<T>& pool) {
    count_overhead(kSlabBytes);
    try {
      const std::lock_guard lock(mutex);
      pool.add_slab();
    } catch (...) {
      uncount_overhead(kSlabBytes);
      throw;
    }
  }

  std::size_t trim();           // Returns the bytes released.
  void forget_unused_shapes();  // Removes the shapes in the ShapeTable that no record refers to.
  std::size_t bytes();

 private:
  void sweep_shapes(const StopThreads& stopped);  // Requires the lock.
  static void count_overhead(std::size_t bytes);
  static void uncount_overhead(std::size_t bytes) noexcept;
};

}  // namespace plimsoll::internal
