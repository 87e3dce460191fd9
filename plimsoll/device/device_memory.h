// A device's memory: how much is used, how to release it, and how standard containers use it.
//
//   MemoryStats stats = memory_stats("CPU:0");            // stats.bytes_in_use, stats.peak_bytes_in_use, ...
//   std::size_t given_back = trim();                      // to the operating system
//   std::pmr::vector<float> values(&memory_resource("CPU:0"));
//
// Without a device the call uses that of the DeviceScope, or the first one. All but trim() and collect_garbage() start
// the runtime and throw InvalidArgument for text that is not a device name, NotFound for a device that does not exist.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/stats.h"

namespace plimsoll {

PLIMSOLL_API MemoryStats memory_stats(std::string_view device = "");
PLIMSOLL_API void reset_memory_stats(std::string_view device = "");  // Peaks fall to what is used now.

// Bytes of our own records, maps and caches for this device; the first CPU device also has the records of all tensors
// (120 bytes for a tensor with its buffer) and the memory kept for each thread. Part of its limit only after
// config::set_charge_overhead(true).
PLIMSOLL_API std::size_t memory_overhead(std::string_view device = "");

// On all devices: applies deferred releases, empties caches and returns every free page, and the pages of unused
// records, to the system. Returns their bytes, 0 before the start. The next allocations fault pages in again, so call
// it when work is over, not during it.
PLIMSOLL_API std::size_t trim();

// On all devices: applies deferred releases, empties caches and returns free ranges of 2 MiB and more to the system.
PLIMSOLL_API void collect_garbage();

// The device's memory for standard containers; see pmr_resource.h. Lives until config::reset_for_testing().
PLIMSOLL_API std::pmr::memory_resource& memory_resource(std::string_view device = "");

}  // namespace plimsoll
