// What the process and the machine hold now, as the system counts it, and what the process's memory consists of.
//
//   ProcessMemory now = process_memory();         // now.resident, now.peak_resident, ...
//   SystemMemory machine = system_memory();       // machine.total, machine.available, machine.groups, ...
//   std::cout << resident_parts().to_string();    // "resident 61.2 MiB = tensors 24.0 MiB + workspaces ... + ..."
//
// Thread safety: any thread. Cost: process_memory() and system_memory() read a few small files; resident_parts() reads
// /proc/self/smaps, about a millisecond per thousand mappings.
#pragma once

#include <cstddef>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll {

struct ProcessMemory {
  std::size_t resident = 0;       // Bytes in physical memory.
  std::size_t peak_resident = 0;  // The most so far.
  std::size_t anonymous = 0;      // The resident bytes that no file backs.
  std::size_t file_backed = 0;    // The resident bytes of programs, libraries and mapped files.
  std::size_t swapped = 0;
  std::size_t address_space = 0;
  std::size_t threads = 0;
};

// `root` is put before every path, so that tests can simulate another system. What cannot be read stays 0.
PLIMSOLL_API ProcessMemory process_memory(const std::string& root = "");

// The machine: total and available memory, swap, the control groups' limits.
inline SystemMemory system_memory() { return read_system_memory(); }

// Invariant: resident == the sum of the others, to the byte.
struct PLIMSOLL_API ResidentParts {
  std::size_t resident = 0;
  std::size_t tensors = 0;     // Live blocks of arenas, except those below.
  std::size_t workspaces = 0;  // Live blocks of category workspace.
  std::size_t caches = 0;      // Live blocks of category cache, and pages that arenas keep for reuse.
  std::size_t metadata = 0;    // The arenas' records.
  std::size_t libraries = 0;   // File-backed: the program, libraries and their data.
  std::size_t heap = 0;        // Allocated by the program and its libraries with malloc and new.
  std::size_t remainder = 0;   // Stacks, malloc's own free lists, and everything else.

  std::string to_string() const;  // One line.
};

// Blocks that were never written are not resident and do not count as tensors.
PLIMSOLL_API ResidentParts resident_parts();

}  // namespace plimsoll
