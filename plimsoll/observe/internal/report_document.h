// The numbers of a report as a JSON document, for report_json() and for the page's head.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "plimsoll/observe/findings.h"

namespace plimsoll::internal {

nlohmann::ordered_json report_document(const TraceHistory& history, const RunSummary& run,
                                       const std::vector<Finding>& findings);

}  // namespace plimsoll::internal
