// One allocation of the heap can be made to fail: what is left behind then?
//
//   fail_heap_after(7);               // of this thread: seven more succeed, the next throws std::bad_alloc, later ones
//   succeed
//   ...
//   bool failed = disarm_heap();
#pragma once

#include <cstddef>

namespace plimsoll {

void fail_heap_after(std::size_t successes) noexcept;
bool disarm_heap() noexcept;  // Whether one has failed.

}  // namespace plimsoll
