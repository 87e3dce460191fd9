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

// While it lives, one `new` of this thread throws std::bad_alloc: the one after `served` others.
class FailHeapAllocation {
 public:
  explicit FailHeapAllocation(std::size_t served) noexcept;
  ~FailHeapAllocation();
  FailHeapAllocation(const FailHeapAllocation&) = delete;
  FailHeapAllocation& operator=(const FailHeapAllocation&) = delete;
};

}  // namespace plimsoll
