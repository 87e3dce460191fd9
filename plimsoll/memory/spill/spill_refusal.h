// Turns failures of a spill file into text and the right kind of error.
//
//   refuse_spill({.directory = "scratch", .requested = 64_MiB, .limit = 32_MiB, .limit_needed = 74_MiB, .reserved =
//   10_MiB});
//   // spill directory "scratch": cannot reserve 64.0 MiB (67108864 bytes): 10.0 MiB ... of its limit of 32.0 MiB ...
//   are taken; ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/spill/spill_transfer.h"

namespace plimsoll::internal {

struct SpillRoom {
  const std::filesystem::path& directory;
  std::size_t requested = 0;     // Bytes of the slot.
  std::size_t limit = 0;         // Of the file: its own, or what it has plus what is free.
  std::size_t limit_needed = 0;  // The limit with which the request would have succeeded.
  std::size_t reserved = 0;
  std::size_t free_bytes = 0;  // In the file system, for this user.
  int error_number = 0;        // The system's; 0 when the file's own limit refuses.
};

// Throws OutOfMemory when something is full; Unsupported where the file system cannot reserve; Error otherwise.
[[noreturn]] void refuse_spill(const SpillRoom& room);

// Throws what wait() promises. `room` is used when something is full.
[[noreturn]] void throw_spill_fault(const SpillFault& fault, const SpillRoom& room);

}  // namespace plimsoll::internal
