// Finds the limit a program would need: the arena's own code replays the program's requests under other limits, over
// pages that do not exist.
//
// Where blocks lie depends on the limit: how long pages are committed before holes are used, what threads may cache,
// and which pages are moved. So the pages a program needs under another limit do not follow from where its blocks lie
// now; but the requests can be replayed, because nothing else decides where blocks lie.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/internal/central_heap.h"
#include "plimsoll/memory/internal/request_log.h"

namespace plimsoll::internal {

class ArenaCore;

// Returns a limit in pages with which an arena like `core` serves everything in `log` and then `request`, while one
// page less does not. The present limit does not. `guess` is where the search starts. At most `most_words` of the log
// are replayed in total: when that is not enough, the result is the smallest limit found to suffice, or 0 when none was
// found. Also 0 when another thread is searching, or when memory for the replay (up to 150 bytes per request during the
// call) is not available.
std::size_t pages_when_run_again(ArenaCore& core, const RequestLog& log, const BlockRequest& request, std::size_t guess,
                                 std::size_t& most_words) noexcept;

}  // namespace plimsoll::internal
