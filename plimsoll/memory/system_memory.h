// SystemMemory: how much memory the machine, its control groups and the process's own limits leave available.
//
//   DefaultLimit limit = default_memory_limit();
//   limit.bytes                    // 1.9 GiB
//   limit.from                     // "control group /docker/4f2a"
//   read_system_memory().resident  // what this process holds, as the system counts it
//
// Swap is never counted on. Thread safety: any thread. Cost: reads about ten small files; about a millisecond for each
// GiB that the process holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

inline constexpr std::size_t kNoMemoryLimit = SIZE_MAX;

// A control group of this process, or a parent of one, that limits memory.
struct MemoryGroup {
  std::string name;       // Its path, as in /proc/self/cgroup; "/" for the topmost one that can be seen.
  std::size_t limit = 0;  // memory.max or memory.high (version 2), memory.limit_in_bytes (version 1).
  std::size_t used = 0;   // By all its processes, file cache included.
  std::size_t reclaimable =
      0;  // Of that, file cache the kernel drops before it kills: all inactive, half of the active.

  std::size_t left() const noexcept {
    const std::size_t held = used > reclaimable ? used - reclaimable : 0;
    return limit > held ? limit - held : 0;
  }
};

struct SystemMemory {
  std::size_t total = 0, available = 0, swap_total = 0, swap_free = 0;  // Of the machine.
  std::size_t resident = 0, address_space = 0;                          // Of this process.
  std::size_t address_space_limit = kNoMemoryLimit;                     // RLIMIT_AS.
  std::vector<MemoryGroup> groups;                                      // Those with a limit, innermost first.

  // The most this process could ever hold: the smallest of all limits and of the machine's memory.
  PLIMSOLL_API std::size_t capacity() const noexcept;
};

// What the system reports now. `root` is put before every path, so that tests can simulate another system. What cannot
// be read stays 0, or no limit.
PLIMSOLL_API SystemMemory read_system_memory(const std::string& root = "");

// One limit on what may be allocated.
struct LimitCandidate {
  std::string from;       // "available memory", "control group /x", "RLIMIT_AS".
  std::size_t left = 0;   // What is still available.
  std::size_t bytes = 0;  // What should be used, after a margin.
};

struct DefaultLimit {
  std::size_t bytes = 0;
  std::string from;
  std::vector<LimitCandidate> candidates;  // All of them, the deciding one included.
};

// The limit of a device that was given none, so that a process that wants too much gets an error it can catch instead
// of being killed. It is the smallest of:
//   available memory and what each control group has left, less a margin of 5 % and at least 32 MiB (but never more
//   than a quarter) for the rest of the process and for our own records; a third of the address space that RLIMIT_AS
//   has left: an arena reserves more addresses than its limit to move pages in, and code, stacks and other libraries
//   need theirs.
// In multiples of 64 KiB, at least 1 MiB.
PLIMSOLL_API DefaultLimit default_memory_limit(const SystemMemory& system);
inline DefaultLimit default_memory_limit() { return default_memory_limit(read_system_memory()); }

// Resident bytes of this process, as /proc/self/smaps_rollup counts them: exact, unlike statm.
PLIMSOLL_API std::size_t resident_bytes(const std::string& root = "");

// The parts, for tests. All tolerate unknown input.
// The bytes of a line "Key:   123 kB" of meminfo or smaps_rollup; 0 when there is none.
PLIMSOLL_API std::size_t parse_kilobytes(std::string_view text, std::string_view key);
// A control group's limit: bytes, or kNoMemoryLimit for "max", for the huge default of version 1 and for anything else.
PLIMSOLL_API std::size_t parse_group_limit(std::string_view text);
// The soft limit in the row "Max address space" of /proc/self/limits.
PLIMSOLL_API std::size_t parse_address_space_limit(std::string_view limits);

}  // namespace plimsoll
