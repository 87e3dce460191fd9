#include "plimsoll/cli/failure_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr std::string_view kPeak = "peak:";

// The kinds of findings that a check looks for.
std::vector<std::string> kinds_of(const std::string& what) {
  if (what == "growth") return {"growth", "graph grows"};
  if (what == "leak") return {"session never closed", "persistent tape", "graph grows", "growth"};
  return {"refused"};
}

}  // namespace

OptionCheck failure_check() {
  return [](const std::string& text) -> std::string {
    if (text == "growth" || text == "leak" || text == "refusal") return "";
    if (!text.starts_with(kPeak))
      return fmt::format("\"{}\" is not a check; use growth, leak, refusal or peak:SIZE", text);
    try {
      parse_bytes(std::string_view(text).substr(kPeak.size()));
      return "";
    } catch (const InvalidArgument&) {
      return fmt::format("\"{}\" has no size; write for example peak:64MiB", text);
    }
  };
}

std::vector<FailureCheck> parse_failure_checks(const std::vector<std::string>& texts) {
  std::vector<FailureCheck> checks;
  for (const std::string& text : texts) {
    const bool is_peak = text.starts_with(kPeak);
    checks.push_back({.what = is_peak ? "peak" : text,
                      .most_bytes = is_peak ? parse_bytes(std::string_view(text).substr(kPeak.size())) : 0});
  }
  return checks;
}

std::vector<std::string> failures_of(const std::vector<FailureCheck>& checks, const RunSummary& run,
                                     const std::vector<Finding>& findings) {
  std::vector<std::string> failed;
  for (const FailureCheck& check : checks) {
    if (check.what == "peak") {
      if (run.peak_bytes > check.most_bytes)
        failed.push_back(fmt::format("peak: {}, more than {}", format_bytes_exactly(run.peak_bytes),
                                     format_bytes_exactly(check.most_bytes)));
      continue;
    }
    const std::vector<std::string> kinds = kinds_of(check.what);
    for (const Finding& finding : findings) {
      if (finding.level == FindingLevel::kNote || std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end())
        continue;
      const bool is_known = std::any_of(failed.begin(), failed.end(),
                                        [&](const std::string& said) { return said.ends_with(": " + finding.title); });
      if (!is_known) failed.push_back(fmt::format("{}: {}", check.what, finding.title));
    }
  }
  return failed;
}

}  // namespace plimsoll::internal
