// replay_pass: runs the operations of a trace once over anything that allocates.
//
//   BfcResource memory({.limit = 24_MiB});
//   std::vector<Block> blocks(trace.slots);
//   std::size_t refused = replay_pass(trace, memory, blocks, {.touch = true});
//   release_all(memory, blocks);     // what the trace never freed
//
// A refused request leaves an empty handle behind, so its free is skipped. There is no lookup in the loop: what is
// timed around it is the allocator, 16 bytes of trace and one handle per operation.
#pragma once

#include <time.h>

#include <cstddef>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/replay/trace_csv.h"

namespace plimsoll::internal {

struct PassOptions {
  bool touch = false;            // Write one byte in each 4 KiB page of each block.
  bool stop_at_refusal = false;  // End at the first refusal.
};

// CPU time of this thread in nanoseconds, which a busy machine does not distort.
inline double thread_cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline void touch_pages(void* data, std::size_t bytes) noexcept {
  auto* byte = static_cast<volatile unsigned char*>(data);
  for (std::size_t at = 0; at < bytes; at += 4096) byte[at] = 1;
  if (bytes > 0) byte[bytes - 1] = 1;
}

// Nothing to do after an operation.
struct NoHook {
  void operator()(std::size_t) const noexcept {}
};

// Memory: allocate(bytes) returns a handle with data() and operator bool, or throws OutOfMemory; deallocate(handle).
// `blocks` has a handle per slot, all empty before. `after(i)` runs after operation i. Returns the number of refusals.
template <class Memory, class Handle, class Hook = NoHook>
std::size_t replay_pass(const Trace& trace, Memory& memory, std::vector<Handle>& blocks, PassOptions options = {},
                        Hook&& after = {}) {
  std::size_t refusals = 0;
  for (std::size_t index = 0; index < trace.operations.size(); ++index) {
    const TraceOperation& operation = trace.operations[index];
    Handle& block = blocks[operation.slot];
    if (!operation.is_allocation) {
      if (block) memory.deallocate(block);
      block = Handle();
    } else {
      try {
        block = memory.allocate(operation.bytes);
        if (options.touch && block) touch_pages(block.data(), operation.bytes);
      } catch (const OutOfMemory&) {
        ++refusals;
        if (options.stop_at_refusal) return refusals;
      }
    }
    after(index);
  }
  return refusals;
}

template <class Memory, class Handle>
void release_all(Memory& memory, std::vector<Handle>& blocks) {
  for (Handle& block : blocks) {
    if (block) memory.deallocate(block);
    block = Handle();
  }
}

}  // namespace plimsoll::internal
