// BfcRegion: one piece of address space that a BfcResource cuts into chunks, and the table that finds a chunk by
// address.
//
//   BfcRegionList regions(mmap_region_source());
//   if (BfcRegion* region = regions.add(2_MiB, 256)) region->set_handle(region->data(), chunk);
//   regions.find(pointer);   // the region around it, or null
//
// The table has one handle per 256 bytes. Real BFC writes it eagerly (3 % of the pool); here the system zeroes it
// lazily, so that modelling a large pool costs little. Not thread safe: BfcResource locks around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

inline constexpr std::size_t kBfcGranule = 256;  // Every chunk is a multiple of this many bytes.

// Where regions come from. Tests replace it to see what happens when it refuses.
class BfcRegionSource {
 public:
  virtual ~BfcRegionSource() = default;
  virtual std::byte* reserve(std::size_t bytes, std::size_t alignment) noexcept = 0;  // Null when refused.
  virtual void release(std::byte* data, std::size_t bytes) noexcept = 0;
};

// Readable and writable address space from the system; a page costs memory only when it is touched.
BfcRegionSource& mmap_region_source();

using BfcHandle = std::uint32_t;  // A chunk's number; 0 means none.

class BfcRegion {
 public:
  // valid() is false when the table could not be allocated.
  BfcRegion(std::byte* data, std::size_t size);

  std::byte* data() const noexcept { return data_; }
  std::byte* end() const noexcept { return data_ + size_; }
  std::size_t size() const noexcept { return size_; }
  bool valid() const noexcept { return handles_ != nullptr; }

  // The chunk that begins in the granule of `address`, 0 if none does. Requires data() <= address < end().
  BfcHandle handle(const void* address) const noexcept { return handles_[granule(address)]; }
  void set_handle(const void* address, BfcHandle handle) noexcept { handles_[granule(address)] = handle; }

 private:
  std::size_t granule(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - data_) / kBfcGranule;
  }
  struct Free {
    void operator()(BfcHandle* table) const noexcept { std::free(table); }
  };
  std::byte* data_;
  std::size_t size_;
  std::unique_ptr<BfcHandle[], Free> handles_;
};

// The regions of one resource, sorted by address.
class BfcRegionList {
 public:
  explicit BfcRegionList(BfcRegionSource& source) noexcept : source_(source) {}
  ~BfcRegionList();
  BfcRegionList(const BfcRegionList&) = delete;
  BfcRegionList& operator=(const BfcRegionList&) = delete;

  // A new region, or null when the source refuses. Invalidates pointers to other regions.
  BfcRegion* add(std::size_t bytes, std::size_t alignment);
  void remove(std::size_t index);

  BfcRegion* find(const void* address) noexcept;
  const std::vector<BfcRegion>& all() const noexcept { return regions_; }
  std::size_t bytes() const noexcept { return bytes_; }  // The pool: all regions together.

 private:
  BfcRegionSource& source_;
  std::vector<BfcRegion> regions_;
  std::size_t bytes_ = 0;
};

}  // namespace plimsoll::internal
