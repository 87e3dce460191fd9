// Steps that recompute or spill to stay inside a budget, and what a slightly larger one would gain.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

constexpr double kWorthSaying = 1.03;  // The smallest speed-up of a step worth reporting.

std::string faster(const TracedRecompute& recompute, const TracedRecompute::Point& point) {
  return fmt::format("with {} more {} is {:.2f} x faster", format_bytes(point.bytes - recompute.now.bytes),
                     recompute.where.empty() ? "it" : fmt::format("a {}", recompute.where),
                     recompute.now.slowdown / point.slowdown);
}

// What gains most per byte, and what it takes to avoid the slowdown entirely.
std::string advice(const TracedRecompute& recompute) {
  const TracedRecompute::Point* best = nullptr;
  double most = 0;
  for (const TracedRecompute::Point& point : recompute.larger) {
    if (point.bytes <= recompute.now.bytes || !(point.slowdown >= 1)) continue;
    if (recompute.now.slowdown < kWorthSaying * point.slowdown) continue;
    const double gain =
        (recompute.now.slowdown - point.slowdown) / static_cast<double>(point.bytes - recompute.now.bytes);
    if (!best || gain > most) best = &point, most = gain;
  }
  if (!best) return "";
  std::string text = faster(recompute, *best);
  const TracedRecompute::Point natural{recompute.natural_bytes, 1};
  if (natural.bytes > best->bytes) text += fmt::format("; {}, as without a budget", faster(recompute, natural));
  return text;
}

void find_evictions(const TracedEvictions& all, std::vector<Finding>& findings) {
  if (all.drops + all.stores == 0) return;
  findings.push_back(
      {.kind = "evicting",
       .level = FindingLevel::kNote,
       .title = fmt::format("Budget \"{}\" evicted to stay inside its limit", all.budget),
       .evidence = fmt::format("{} drops ({}), {} stores ({}); {} operations ran again, {} loads ({})", all.drops,
                               format_bytes(all.dropped_bytes), all.stores, format_bytes(all.stored_bytes), all.repeats,
                               all.loads, format_bytes(all.loaded_bytes)),
       .remedy = all.repeats > 0 ? "a larger budget repeats fewer operations" : "",
       .bytes = all.dropped_bytes + all.stored_bytes});
}

}  // namespace

std::string describe_recompute(const TracedRecompute& recompute) {
  std::string text =
      fmt::format("{} values are dropped for a while, {} steps run again", recompute.drops, recompute.repeats);
  if (recompute.stores + recompute.loads > 0)
    text += fmt::format(", {} values ({}) are stored, {} loads", recompute.stores, format_bytes(recompute.stored_bytes),
                        recompute.loads);
  return text + fmt::format("; predicted {:.2f} x the time", recompute.now.slowdown);
}

void find_recomputing(const TraceHistory& history, std::vector<Finding>& findings) {
  const auto slower = [](const TracedRecompute& a, const TracedRecompute& b) {
    return a.now.slowdown < b.now.slowdown;
  };
  const auto slowest = std::max_element(history.recomputes.begin(), history.recomputes.end(), slower);
  if (slowest != history.recomputes.end()) {
    const bool stores = slowest->stores > 0;
    findings.push_back(
        {.kind = "recomputing",
         .level = FindingLevel::kNote,
         .title = fmt::format("To stay inside the budget a {} {} and takes {:.2f} x the time (predicted)",
                              slowest->where.empty() ? "step" : slowest->where,
                              !stores                ? "recomputes"
                              : slowest->repeats > 0 ? "recomputes and spills"
                                                     : "spills",
                              slowest->now.slowdown),
         .evidence = fmt::format("{} instead of {}: {}", format_bytes(slowest->now.bytes),
                                 format_bytes(slowest->natural_bytes), describe_recompute(*slowest)),
         .remedy = advice(*slowest),
         .bytes = slowest->natural_bytes - std::min(slowest->natural_bytes, slowest->now.bytes),
         .moment = slowest->moment});
  }
  find_evictions(history.evictions, findings);
}

}  // namespace plimsoll
