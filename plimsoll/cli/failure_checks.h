// The checks of `plimsoll doctor --fail-on growth,leak,refusal,peak:64MiB`, which make a build fail.
//
//   for (const std::string& failure : failures_of(parse_failure_checks({"leak"}), summary, findings)) ...
#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/options.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll::internal {

struct FailureCheck {
  std::string what;            // "growth", "leak", "refusal" or "peak".
  std::uint64_t most_bytes{};  // Of a peak.
};

OptionCheck failure_check();  // Of one text.
// Requires texts that have passed the check.
std::vector<FailureCheck> parse_failure_checks(const std::vector<std::string>& texts);

// A sentence for each check that found something.
std::vector<std::string> failures_of(const std::vector<FailureCheck>& checks, const RunSummary& run,
                                     const std::vector<Finding>& findings);

}  // namespace plimsoll::internal
