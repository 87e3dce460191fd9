// allocate, deallocate: blocks of a device's memory, for programs that want bytes rather than tensors.
//
//   Block block = allocate(1_MiB, {.device = "CPU:0", .tag = "lookup table"});
//   block.data(); block.size();
//   deallocate(block);                                        // a second time: InvalidArgument
//
//   OwnedBlock scratch(64_KiB, {.tag = "decoder"});           // deallocates its block at the end of the scope
//
// Blocks are aligned to 64 bytes, not cleared, charged to the thread's BudgetScope, counted by memory_stats() and
// listed by their tag in every memory report. Thread safety: any thread may deallocate any block. Cost: about 30 ns for
// a pair, 45 with a tag.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/memory_resource.h"

namespace plimsoll {

struct AllocateOptions {
  std::string device = {};  // "CPU:0"; if empty, that of the DeviceScope, or the first one.
  std::string tag = {};     // What it is for. Tags are never freed: use few, not one per block.
};

// Starts the runtime. Zero bytes return an empty block. Throws OutOfMemory, having changed nothing, when it does not
// fit; InvalidArgument or NotFound for a wrong device.
[[nodiscard]] PLIMSOLL_API Block allocate(std::size_t bytes, const AllocateOptions& options = {});

// Throws InvalidArgument, changing nothing, for a block that was deallocated before or did not come from allocate(). An
// empty block is allowed.
PLIMSOLL_API void deallocate(const Block& block);

// A block that is deallocated with its owner. Movable, not copyable.
class PLIMSOLL_API OwnedBlock {
 public:
  OwnedBlock() = default;
  explicit OwnedBlock(std::size_t bytes, const AllocateOptions& options = {}) : block_(allocate(bytes, options)) {}
  explicit OwnedBlock(const Block& block) noexcept : block_(block) {}  // Takes ownership of a block from allocate().
  OwnedBlock(OwnedBlock&& other) noexcept : block_(other.release()) {}
  OwnedBlock& operator=(OwnedBlock&& other) noexcept {
    OwnedBlock old(std::exchange(block_, other.release()));
    return *this;
  }
  ~OwnedBlock();  // Logs an error when the block was deallocated by someone else.

  void* data() const noexcept { return block_.data(); }
  std::size_t size() const noexcept { return block_.size(); }
  const Block& block() const noexcept { return block_; }
  explicit operator bool() const noexcept { return static_cast<bool>(block_); }

  [[nodiscard]] Block release() noexcept { return std::exchange(block_, {}); }  // The caller's to deallocate.
  void reset() noexcept { *this = OwnedBlock(); }

 private:
  Block block_;
};

}  // namespace plimsoll
