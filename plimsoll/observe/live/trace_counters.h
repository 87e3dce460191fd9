// The counters of a recorded run at its last event, as if they were published: for `plimsoll serve RUN.trace`.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/live/live_counters.h"
#include "plimsoll/observe/run_summary.h"

namespace plimsoll::internal {

// `name` is what the counters call the run.
PLIMSOLL_API LiveCounters counters_at_end(const TraceHistory& history, const RunSummary& run, const std::string& name);

}  // namespace plimsoll::internal
