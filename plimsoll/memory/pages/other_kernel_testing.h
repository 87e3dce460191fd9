// OtherKernel: system calls of a process answer as those of another kernel, of a container or of another setting would.
//
//   SKIP_UNLESS_EMULATED();
//   in_own_process([] {
//     become(OtherKernel::kForbidsUserfault);
//     EXPECT_EQ(HostPageSource().reserve(1_MiB, 1_MiB)->mover(), "remap");
//   });
//
// A filter (seccomp) stops the calls in question and a signal handler answers them. It stays for the rest of the
// process, hence a process of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>

#include "plimsoll/base/sanitized_testing.h"

namespace plimsoll {

enum class OtherKernel {
  kUnmapsBeforeItFails,    // Before Linux 6.17: mremap to a fixed place unmaps it, then refuses several mappings.
  kFailsHalfway,           // mremap to a fixed place always unmaps it, then fails.
  kForbidsUserfault,       // As the rules of many containers.
  kPrefersHugePages,       // transparent_hugepage/enabled is "always".
  kHasSwappedEverything,   // mincore sees no page in memory.
  kCannotDropLockedPages,  // Before Linux 5.18.
  kKeepsPages,             // No page is ever taken back.
};

// From now on and for good. Ends the process when that cannot be.
void become(OtherKernel kernel);

// Why become() would fail here; empty when it works.
const char* why_not_emulated();
#define SKIP_UNLESS_EMULATED() \
  if (const char* why = ::plimsoll::why_not_emulated(); *why) GTEST_SKIP() << why

// Runs `f` in a new process; what it expects counts.
void in_own_process(const std::function<void()>& f);

// While mremap failed after unmapping its destination, "another thread" mapped that place, and wrote there.
std::size_t mappings_of_others();
bool mappings_of_others_intact();

// Bytes in memory, whatever mincore says by now.
std::size_t resident_bytes_in(const void* data, std::size_t bytes);

}  // namespace plimsoll
