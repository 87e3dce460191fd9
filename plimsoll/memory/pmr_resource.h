// PmrResource: an arena as a std::pmr::memory_resource, for standard containers whose memory is limited and counted.
//
//   PmrResource resource(arena);                    // or memory_resource("CPU:0"), see device_memory.h
//   std::pmr::vector<float> values(&resource);      // charged, in the ledger as "pmr", refused past the limit
//
// Every allocation is a block of its own: rounded up to 64 bytes, with a record of 128 bytes, charged to the budget of
// the scope it was made in. For containers of many small nodes put a std::pmr::unsynchronized_pool_resource over it.
//
// Past a limit it throws PmrOutOfMemory, which is a std::bad_alloc, as standard containers and their users expect.
// Deallocating a pointer that it did not hand out, one that was deallocated before, or one with a size other than the
// requested one throws InvalidArgument and changes nothing (in a container's destructor that ends the program, as the
// standard requires). Thread safety: any thread. A forked child may deallocate. Cost: about 25 ns for a pair in steady
// state.
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"

namespace plimsoll {

class Arena;
namespace internal {
class BlockMap;
}  // namespace internal

// A container did not get its memory: what() and refusal() say what OutOfMemory says. It is not an OutOfMemory itself:
// an exception that is both that and a std::bad_alloc would be a std::exception twice, which `catch (const
// std::exception&)` does not catch.
class PLIMSOLL_API PmrOutOfMemory final : public std::bad_alloc {
 public:
  explicit PmrOutOfMemory(const OutOfMemory& refusal) noexcept
      : refusal_(refusal) {}  // NOLINT(bugprone-throw-keyword-missing)
  ~PmrOutOfMemory() override;
  const char* what() const noexcept override { return refusal_.what(); }
  const OutOfMemory& refusal() const noexcept { return refusal_; }

 private:
  OutOfMemory refusal_;
};

class PLIMSOLL_API PmrResource final : public std::pmr::memory_resource {
 public:
  // Borrows the arena, whose memory this process must be able to address. Throws OutOfMemory when there is no address
  // space for its map of blocks.
  explicit PmrResource(Arena& arena);
  ~PmrResource() override;
  PmrResource(const PmrResource&) = delete;
  PmrResource& operator=(const PmrResource&) = delete;

  std::size_t trim() noexcept;                  // Releases what its map does not need; returns the bytes.
  std::size_t overhead_bytes() const noexcept;  // Memory of its map; see block_map.h.

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  Arena& arena_;
  const std::size_t most_alignment_;
  const std::unique_ptr<BlockMap> blocks_;
};

}  // namespace plimsoll
