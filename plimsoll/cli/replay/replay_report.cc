#include "plimsoll/cli/replay/replay_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/table.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostOperationsSearched = 1'000'000;  // For more, searching the smallest pool takes too long.

std::string share(std::size_t bytes, std::size_t of) {
  return of == 0 ? "" : fmt::format("{:.3f} x live", static_cast<double>(bytes) / static_cast<double>(of));
}

}  // namespace

BfcComparison compare_with_bfc(const Trace& trace, const ReplayOptions& options) {
  BfcComparison bfc;
  bfc.grown = replay(trace, {.policy = ReplayPolicy::kBfc, .growth = true, .repeat = 0}).peak_reserved;
  if (options.limit > 0)
    bfc.refusals = replay(trace, {.policy = ReplayPolicy::kBfc, .limit = options.limit, .repeat = 0}).refusals;
  if (trace.operations.size() <= kMostOperationsSearched) bfc.smallest_pool = smallest_bfc_pool(trace);
  return bfc;
}

std::string replay_table(const Trace& trace, const ReplayOptions& options, const ReplayResult& result) {
  Table table({trace.name, policy_name(options.policy), ""});
  table.add(
      {"operations", fmt::format("{}", trace.operations.size()), fmt::format("{} allocations", trace.allocations)});
  if (trace.never_freed > 0) table.add({"never freed", fmt::format("{}", trace.never_freed), "blocks"});
  const bool limited = options.limit > 0;
  table.add(
      {"limit", limited ? format_bytes(result.limit) : "none", limited ? share(result.limit, trace.peak_live) : ""});
  table.add({"peak live", format_bytes(trace.peak_live), "bytes asked for"});
  table.add({"peak in use", format_bytes(result.peak_in_use), share(result.peak_in_use, trace.peak_live)});
  table.add({"peak reserved", format_bytes(result.peak_reserved), share(result.peak_reserved, trace.peak_live)});
  table.add({"refusals", fmt::format("{}", result.refusals), result.refusals == 0 ? "it fits" : "it does not fit"});
  if (options.policy == ReplayPolicy::kArena) table.add({"pages moved", fmt::format("{}", result.pages_moved)});
  if (options.repeat > 0)
    table.add({"time per operation", fmt::format("{:.1f} ns", result.ns_per_op),
               fmt::format("mean {:.1f} ns of {} passes", result.ns_per_op_mean, options.repeat)});
  return table.text();
}

std::string comparison_text(const Trace& trace, const ReplayOptions& options, const BfcComparison& bfc) {
  std::string text = fmt::format("The same trace under TensorFlow's policy would reserve {} ({})",
                                 format_bytes(bfc.grown), share(bfc.grown, trace.peak_live));
  if (bfc.smallest_pool > 0)
    text += fmt::format(" when it grows,\nand needs a fixed pool of at least {} ({})", format_bytes(bfc.smallest_pool),
                        share(bfc.smallest_pool, trace.peak_live));
  if (options.limit > 0)
    text += fmt::format("; in a pool of {} it refuses {} of {} requests", format_bytes(options.limit), bfc.refusals,
                        trace.allocations);
  return text + ".\n";
}

std::string replay_json(const Trace& trace, const ReplayOptions& options, const ReplayResult& result) {
  nlohmann::ordered_json document;
  document["trace"] = trace.name;
  document["policy"] = policy_name(options.policy);
  document["ops"] = trace.operations.size();
  document["ns_per_op"] = result.ns_per_op;
  document["ns_per_op_mean"] = result.ns_per_op_mean;
  document["peak_live"] = trace.peak_live;
  document["peak_in_use"] = result.peak_in_use;
  document["peak_reserved"] = result.peak_reserved;
  document["refusals"] = result.refusals;
  document["limit"] = result.limit;
  document["limited"] = options.limit > 0;
  document["growth"] = options.growth;
  document["touch"] = options.touch;
  document["repeat"] = options.repeat;
  document["never_freed"] = trace.never_freed;
  document["pages_moved"] = result.pages_moved;
  return json_text(document, 2);
}

bool output_shows_unicode() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string lower(value);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace plimsoll::internal
