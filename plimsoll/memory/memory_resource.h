// MemoryResource: anything that hands out blocks of memory. Start reading here.
//
//   MemoryResource& memory = ...;
//   Block block = memory.allocate(1_MiB);
//   memory.deallocate(block);   // a second time throws InvalidArgument and changes nothing
//
// Every implementation passes the one conformance suite (memory_resource_testing.h).
// Thread safety: every method may be called from any thread; any thread may deallocate a block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/stats.h"

namespace plimsoll {

class MemoryResource;

// The result of allocate(): a copyable handle that owns nothing. An empty one has no data and may be deallocated.
class Block {
 public:
  Block() = default;
  Block(void* data, std::size_t size, MemoryResource* owner, std::uint64_t token) noexcept
      : data_(data), size_(size), owner_(owner), token_(token) {}

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }  // Bytes asked for.
  explicit operator bool() const noexcept { return data_ != nullptr; }

  MemoryResource* owner() const noexcept { return owner_; }
  std::uint64_t token() const noexcept { return token_; }  // For the owner's use.

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  MemoryResource* owner_ = nullptr;
  std::uint64_t token_ = 0;
};

inline constexpr std::size_t kDefaultAlignment = 64;

class PLIMSOLL_API MemoryResource {
 public:
  virtual ~MemoryResource();

  // A block of at least `bytes`, aligned to at least `alignment` (a power of two; smaller ones are raised to 64).
  // Zero bytes give an empty block and count nothing. Throws InvalidArgument for a wrong alignment,
  // OutOfMemory when it does not fit: then nothing was allocated or counted.
  [[nodiscard]] virtual Block allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) = 0;

  // Throws InvalidArgument, changing nothing, for a block that was deallocated before or that this resource did not
  // hand out.
  virtual void deallocate(const Block& block) = 0;

  virtual MemoryStats stats() const = 0;
};

}  // namespace plimsoll
