// What a program would need: its requests run again under other limits, by the arena's own code, over pages that do not
// exist.
//
// Where blocks lie depends on the limit: how long pages are committed before holes are used, what threads may cache,
// and which pages are moved. So how many pages a program needs under another limit cannot be told from where its blocks
// lie now; but it can be tried, since nothing else decides where they lie.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/internal/central_heap.h"
#include "plimsoll/memory/internal/request_log.h"

namespace plimsoll::internal {

class ArenaCore;

// A limit in pages with which an arena like `core` serves all that `log` has and then `request`, while with one page
// less it does not. The present limit does not. `guess` is where to begin looking. At most `most_words` of the log are
// run, in all: when that does not do, the least that was found to be enough, or 0 when nothing was found. Also 0 when
// another thread is at it, or there is no memory for it: up to 150 bytes for each request for the time of the call.
std::size_t pages_when_run_again(ArenaCore& core, const RequestLog& log, const BlockRequest& request, std::size_t guess,
                                 std::size_t& most_words) noexcept;

}  // namespace plimsoll::internal
