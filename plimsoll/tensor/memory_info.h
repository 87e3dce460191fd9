// memory(): how many tensors live, on how many buffers, of how many bytes.
//
//   const MemoryInfo before = memory();
//   Tensor flat = x.reshape({-1});
//   memory().num_tensors == before.num_tensors + 1;        // a tensor more
//   memory().num_data_buffers == before.num_data_buffers;  // on the same buffer
//
// Bytes are those asked for, each buffer once however many tensors lie on it; tapes and caches hold buffers, not
// tensors. A storage that a budget dropped is a buffer still, whose bytes are in dropped_bytes instead of num_bytes
// until it is read. Memory that belongs to the program (wrap) counts as a buffer of 0 bytes, a tensor without elements
// too. Thread safety: any thread; exact when no other thread makes or drops tensors meanwhile. Cost: grows with the
// number of threads, not of tensors.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct MemoryInfo {
  std::size_t num_tensors = 0;
  std::size_t num_data_buffers = 0;
  std::size_t num_bytes = 0;      // Resident.
  std::size_t dropped_bytes = 0;  // To be recomputed when they are read.
  std::size_t spilled_bytes = 0;  // Kept on a disk.
};
PLIMSOLL_API MemoryInfo memory();

}  // namespace plimsoll
