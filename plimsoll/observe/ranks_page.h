// The report of a job: one offline page with a table of its processes, and the page of each one behind its row.
//
//   std::vector<RankTrace> ranks = {read_rank_trace("r0.trace"), read_rank_trace("r1.trace")};
//   file.write(ranks_page(ranks));
//
// Cost: the sum of the pages. Thread safety: plain functions.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/findings.h"
#include "plimsoll/observe/run_summary.h"
#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

struct RankTrace {
  std::string name;  // Of its file.
  TraceHistory history;
  RunSummary summary;
  std::vector<Finding> findings;
};

// Throws what read_trace_file() throws.
PLIMSOLL_API RankTrace read_rank_trace(const std::string& path);
// Throws Unsupported without the page of reports, InvalidArgument for no ranks.
PLIMSOLL_API std::string ranks_page(const std::vector<RankTrace>& ranks);

}  // namespace plimsoll::internal
