// Counts what a piece of code allocates on the heap, to test the promise that it does not.
//
//   const std::size_t before = heap_allocations();
//   work();
//   EXPECT_EQ(heap_allocations(), before);
//
// Counts every `new` of all threads of the test program this file is linked into.
#pragma once

#include <cstddef>

namespace plimsoll {

std::size_t heap_allocations() noexcept;
std::size_t heap_bytes() noexcept;  // Total bytes ever allocated, freed or not.

// For this thread: `successes` more allocations succeed, the next throws std::bad_alloc, later ones succeed.
void fail_heap_after(std::size_t successes) noexcept;
bool disarm_heap() noexcept;  // Whether one has failed.

}  // namespace plimsoll
