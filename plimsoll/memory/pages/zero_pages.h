// Zeroed address space that costs real memory only where it was written, even in a process that locks its memory
// (mlockall) and on a system that prefers huge pages.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct ZeroPages {
  void* data = nullptr;      // nullptr when refused; `error` says why.
  int error = 0;             // An errno value.
  bool unlocked = false;     // The process locks its memory; these pages are not locked.
  bool may_be_huge = false;  // The system would not turn huge pages off: touching a byte may take 2 MiB.
};

// With `at`: exactly there, and only if nothing is mapped there.
ZeroPages try_map_zero_pages(std::size_t bytes, void* at = nullptr) noexcept;

// Throws OutOfMemory that says what the memory was for.
void* map_zero_pages(std::size_t bytes, const char* what);
void unmap_zero_pages(void* data, std::size_t bytes) noexcept;

}  // namespace plimsoll::internal
