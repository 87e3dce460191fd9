// memory(): the number of live tensors, of their buffers, and of bytes in those.
//
//   const MemoryInfo before = memory();
//   Tensor flat = x.reshape({-1});
//   memory().num_tensors == before.num_tensors + 1;        // one more tensor
//   memory().num_data_buffers == before.num_data_buffers;  // on the same buffer
//
// Bytes are requested bytes; each buffer counts once however many tensors share it. Tapes and caches hold buffers, not
// tensors. A storage that a budget dropped is still a buffer; its bytes are in dropped_bytes instead of num_bytes until
// it is read. Memory that belongs to the program (wrap) counts as a buffer of 0 bytes, and so does a tensor without
// elements. Thread safety: any thread; exact when no other thread makes or drops tensors meanwhile. Cost: grows with
// the number of threads, not of tensors.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct MemoryInfo {
  std::size_t num_tensors = 0;
  std::size_t num_data_buffers = 0;
  std::size_t num_bytes = 0;      // Resident.
  std::size_t dropped_bytes = 0;  // Will be recomputed when they are read.
  std::size_t spilled_bytes = 0;  // Stored on a disk.
};
PLIMSOLL_API MemoryInfo memory();

}  // namespace plimsoll
