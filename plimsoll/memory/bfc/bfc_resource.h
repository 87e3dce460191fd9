// BfcResource: what a program's memory would look like under TensorFlow's allocator, "best fit with coalescing".
//
// A model for comparison, written from the observed rules; the arena is what Plimsoll itself uses.
//   BfcResource bfc({.name = "GPU:0", .limit = 512_MiB, .growth = true});
//   Block block = bfc.allocate(100'000);       // takes a 2 MiB region, cuts a chunk of 100096 bytes from it
//   bfc.stats().bytes_reserved;                // 2 MiB
//
// The rules: sizes are rounded up to 256 bytes; free chunks are kept in 21 bins by powers of two and the best fitting
// one is cut in two only when it is twice the request or 128 MiB would be wasted; neighbours merge at once, inside one
// region only. Without growth one region of the whole limit is taken at the first request. With growth regions start at
// 2 MiB and double. When nothing fits, regions without a live chunk are given back and the pool is extended once more.
// Not modelled: waiting ten seconds before a refusal, time-stamped reuse, two-ended pools.
//
// Regions are reserved address space: a page costs memory only when it is touched.
// Thread safety: every method may be called from any thread; one lock serves all, as in the original.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/bfc/bfc_chunks.h"
#include "plimsoll/memory/memory_resource.h"

namespace plimsoll::internal {

struct BfcOptions {
  std::string name = "bfc";  // Named in errors.
  std::size_t limit = std::size_t{8} << 30;
  bool growth = false;
  bool garbage_collection = true;                           // Releases empty regions before a refusal.
  std::size_t max_internal_waste = std::size_t{128} << 20;  // A chunk is cut when more would be wasted.
  BfcRegionSource* source = nullptr;                        // Borrowed; the system's address space when null.
};

// One chunk and its place in its region. Regions are listed in address order.
struct BfcExtent {
  std::size_t offset = 0;  // As if all regions lay end to end.
  std::size_t size = 0;
  std::size_t requested = 0;  // 0 while free.
};

class BfcResource final : public MemoryResource {
 public:
  // Reserves nothing yet. Throws InvalidArgument for a limit below 256 bytes.
  explicit BfcResource(BfcOptions options);
  ~BfcResource() override;

  [[nodiscard]] Block allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) override;
  void deallocate(const Block& block) override;
  MemoryStats stats() const override;

  std::vector<BfcExtent> extents() const;
  std::size_t num_regions() const;

  // Releases the regions without a live chunk; returns their bytes.
  std::size_t collect_garbage();

 private:
  // All require the lock.
  BfcHandle find_or_extend(std::size_t size, std::size_t alignment);
  bool extend(std::size_t size, std::size_t alignment);
  BfcRegion* reserve_region(std::size_t bytes, std::size_t least, std::size_t alignment);
  std::size_t free_empty_regions(std::size_t least);
  bool empty(const BfcRegion& region) const noexcept;
  Block hand_out(BfcHandle handle, std::size_t bytes, std::size_t size, std::size_t alignment);
  void split(BfcHandle handle, std::size_t size);
  BfcHandle merge_with_next(BfcHandle handle);
  [[noreturn]] void refuse(std::size_t bytes, std::size_t size);

  const BfcOptions options_;
  mutable std::mutex mutex_;
  BfcRegionList regions_;
  BfcChunks chunks_;
  std::size_t step_;  // Bytes of the next region, unless the request or the limit says otherwise.
  std::uint64_t next_id_ = 1;
  MemoryStats stats_;
};

}  // namespace plimsoll::internal
