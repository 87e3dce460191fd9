// Growth: what is live at the same phase of each step and increases.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

constexpr std::size_t kLeastSteps = 4;  // Fewer do not show growth.

struct Group {
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> changes;  // At a boundary: blocks and bytes.
  std::uint32_t label = 0;                                               // The label of one of them.
};

// The longest range of boundaries over which a group never shrank.
struct Run {
  std::size_t first = 0, last = 0, rises = 0;
  std::int64_t blocks = 0, bytes = 0;
};

using GroupKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // Operation, scope, site.

// Boundaries are the moments at which steps begin, and the end of the trace when it ends within a step.
std::vector<std::uint32_t> boundaries_of(const TraceHistory& history, const RunSummary& run) {
  std::vector<std::uint32_t> result;
  for (const StepSummary& step : run.steps) result.push_back(step.first_moment);
  if (!result.empty()) return result;
  constexpr std::size_t kSlices = 32;  // Without steps: slices with the same number of moments.
  const std::size_t moments = history.times.size();
  for (std::size_t i = 0; moments >= 8 * kSlices && i <= kSlices; ++i)
    result.push_back(static_cast<std::uint32_t>(moments * i / kSlices));
  return result;
}

// Boundaries at which a block is live: those in (born, died]. A boundary at moment m sees what happened before m.
std::map<GroupKey, Group> groups_of(const TraceHistory& history, const std::vector<std::uint32_t>& boundaries) {
  std::map<GroupKey, Group> groups;
  const auto first_after = [&](std::uint32_t moment) {
    return static_cast<std::size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), moment) -
                                    boundaries.begin());
  };
  for (const TracedBlock& block : history.blocks) {
    const std::size_t from = first_after(block.born);
    const std::size_t to = block.died == TracedBlock::kNever ? boundaries.size() : first_after(block.died);
    if (from == to) continue;
    const TracedLabel& label = history.labels[block.label];
    Group& group = groups[{label.op, label.scope, label.site}];
    group.label = block.label;
    auto& gain = group.changes[from];
    ++gain.first;
    gain.second += static_cast<std::int64_t>(block.size);
    auto& loss = group.changes[to];
    --loss.first;
    loss.second -= static_cast<std::int64_t>(block.size);
  }
  return groups;
}

// `warm`: boundaries before it are not judged. `count`: how many there are.
Run longest_run(const Group& group, std::size_t warm, std::size_t count) {
  Run best, now{.first = warm, .last = warm};
  for (const auto& [boundary, change] : group.changes) {
    if (boundary <= warm || boundary >= count) continue;
    if (change.second < 0 || change.first < 0) {
      now = {.first = boundary, .last = boundary};
    } else if (change.second > 0) {
      now.last = boundary;
      ++now.rises;
      now.blocks += change.first;
      now.bytes += change.second;
      if (now.bytes > best.bytes) best = now;
    }
  }
  return best;
}

struct Found {
  const Group* group;
  Run rise;
};

// Growing groups of one scope and site make one finding.
struct Culprit {
  std::vector<Found> groups;  // Most bytes first.
  std::int64_t blocks = 0, bytes = 0;
};

std::string ops_text(const TraceHistory& history, const Culprit& culprit) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(culprit.groups.size(), kMost); ++i)
    text +=
        fmt::format("{}\"{}\"", i == 0 ? "" : ", ", history.names[history.labels[culprit.groups[i].group->label].op]);
  if (culprit.groups.size() > kMost) text += fmt::format(" and {} more", culprit.groups.size() - kMost);
  return text;
}

Finding growth_finding(const TraceHistory& history, const RunSummary& run, const Culprit& culprit,
                       const std::vector<std::uint32_t>& boundaries) {
  const Run& rise = culprit.groups.front().rise;
  const TracedLabel& label = history.labels[culprit.groups.front().group->label];
  const std::size_t span = std::max<std::size_t>(rise.last - rise.first, 1);
  const auto bytes = static_cast<std::uint64_t>(culprit.bytes);
  const bool by_step = !run.steps.empty();
  std::string where;
  if (label.scope != 0) where += fmt::format(" in scope \"{}\"", history.names[label.scope]);
  if (label.site != 0) where += fmt::format(" at {}", history.names[label.site]);
  const std::string shape = shape_text(label);
  Finding finding{.kind = "growth", .level = FindingLevel::kProblem, .bytes = bytes, .moment = boundaries[rise.last]};
  finding.title = fmt::format("Live memory grows {}: tensors of {}{}",
                              by_step ? fmt::format("by {} per step", format_bytes(bytes / span)) : "throughout",
                              ops_text(history, culprit), where);
  finding.evidence = fmt::format("{} more of them ({}) {}, rising {} times over {} {} and never falling; category {}{}",
                                 culprit.blocks, format_bytes(bytes),
                                 by_step ? fmt::format("at the start of step {} than at that of step {}",
                                                       run.steps[rise.last].number, run.steps[rise.first].number)
                                         : "at the end than at the beginning",
                                 rise.rises, span, by_step ? "steps" : "slices of the trace",
                                 category_name(label.category), shape.empty() ? "" : fmt::format(", shape {}", shape));
  finding.remedy =
      "something outside the step keeps what each step creates: a list of results, a running sum of losses that is "
      "still a tensor, a tape that is kept; take numbers out with item() or to_vector(), wrap the step in tidy(), and "
      "use who_holds(tensor) to see what keeps one";
  return finding;
}

}  // namespace

void find_growth(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  const std::vector<std::uint32_t> boundaries = boundaries_of(history, run);
  if (boundaries.size() < kLeastSteps) return;
  const std::size_t warm = std::min<std::size_t>(2, boundaries.size() / 4);
  const std::size_t least = std::max<std::size_t>(kLeastSteps - 1, std::min<std::size_t>(boundaries.size() / 4, 64));
  const std::map<GroupKey, Group> groups = groups_of(history, boundaries);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Culprit> culprits;  // By scope and site.
  for (const auto& [key, group] : groups) {
    const Run rise = longest_run(group, warm, boundaries.size());
    const std::size_t span = rise.last - rise.first;
    if (rise.rises < 3 || span + 1 < least || rise.rises * 2 < span) continue;
    Culprit& culprit = culprits[{std::get<1>(key), std::get<2>(key)}];
    culprit.groups.push_back({&group, rise});
    culprit.blocks += rise.blocks;
    culprit.bytes += rise.bytes;
  }
  for (auto& [where, culprit] : culprits) {
    std::stable_sort(culprit.groups.begin(), culprit.groups.end(),
                     [](const Found& a, const Found& b) { return a.rise.bytes > b.rise.bytes; });
    findings.push_back(growth_finding(history, run, culprit, boundaries));
  }
}

}  // namespace plimsoll
