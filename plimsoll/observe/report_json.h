// The numbers of a report as one JSON document: what `plimsoll report --json` and `plimsoll doctor --json` print and
// what the page shows.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {

PLIMSOLL_API std::string report_json(const TraceHistory& history, const RunSummary& run,
                                     const std::vector<Finding>& findings, int indent = 2);

}  // namespace plimsoll
