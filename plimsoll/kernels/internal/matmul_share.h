// share_out: runs pieces of work in parallel so that a thread tends to get the same ones again.
//
//   share_out(pieces, true, [&](std::int64_t piece) { ... });
//
// The calling thread takes pieces from the front, the others from the back: what the caller packed or summed into
// before, it mostly finds in its own caches. Which thread runs a piece does not change what the piece is.
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/base/thread_pool.h"

namespace plimsoll {

inline const void* this_thread_mark() noexcept {
  static thread_local char mark;
  return &mark;
}

// In the calling thread alone when `is_parallel` is false.
template <class F>
void share_out(std::int64_t pieces, bool is_parallel, const F& run) noexcept {
  if (!is_parallel || pieces == 1) {
    for (std::int64_t i = 0; i < pieces; ++i) run(i);
    return;
  }
  const void* const caller = this_thread_mark();
  std::atomic<std::int64_t> front = 0, back = pieces;  // Never cross: there are as many turns as pieces.
  parallel_for(pieces, 1, [&](std::int64_t, std::int64_t) {
    run(this_thread_mark() == caller ? front.fetch_add(1, std::memory_order_relaxed)
                                     : back.fetch_sub(1, std::memory_order_relaxed) - 1);
  });
}

}  // namespace plimsoll
