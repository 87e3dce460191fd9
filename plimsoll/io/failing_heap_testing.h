// The heap of the io tests, one of whose allocations can be made to fail: what is left behind then?
//
//   FailingHeap::fail_after(7);           // seven more succeed, the next throws std::bad_alloc, later ones succeed
//   ...
//   bool failed = FailingHeap::disarm();
//
// Of the thread that armed it only.
#pragma once

#include <cstddef>

namespace plimsoll {

struct FailingHeap {
  static void fail_after(std::size_t allocations) noexcept;
  static bool disarm() noexcept;  // Whether one has failed.
};

}  // namespace plimsoll
