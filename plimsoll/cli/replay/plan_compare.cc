#include "plimsoll/cli/replay/plan_compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll::internal {
namespace {

std::size_t peak_of(const Lifetimes& lifetimes) {
  if (lifetimes.offsets.size() != lifetimes.buffers.size())
    throw InvalidArgument("compare: the file has no offset column; make it with plimsoll plan --out");
  if (const std::string fault = validate_plan(lifetimes.buffers, lifetimes.offsets); !fault.empty())
    throw InvalidArgument(fmt::format("compare: the file holds no valid plan: {}", fault));
  std::size_t peak = 0;
  for (std::size_t i = 0; i < lifetimes.buffers.size(); ++i)
    peak = std::max(peak, lifetimes.offsets[i] + lifetimes.buffers[i].size);
  return peak;
}

std::unordered_map<std::string, std::size_t> index_of_ids(const Lifetimes& lifetimes) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < lifetimes.ids.size(); ++i) index.emplace(lifetimes.ids[i], i);
  return index;
}

bool same_times(const Buffer& a, const Buffer& b) {
  const auto equal = [](const Gap& x, const Gap& y) {
    return x.lower == y.lower && x.upper == y.upper && x.window_lower == y.window_lower &&
           x.window_upper == y.window_upper;
  };
  return a.lower == b.lower && a.upper == b.upper &&
         std::equal(a.gaps.begin(), a.gaps.end(), b.gaps.begin(), b.gaps.end(), equal);
}

std::string list_ids(const std::vector<std::string>& ids) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ids.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + ids[i];
  if (ids.size() > kMost) text += fmt::format(", and {} more", ids.size() - kMost);
  return text;
}

}  // namespace

PlanDifference compare_plans(const Lifetimes& older, const Lifetimes& newer) {
  PlanDifference difference;
  difference.old_peak = peak_of(older);
  difference.new_peak = peak_of(newer);
  difference.same_instance = instance_hash(older.buffers) == instance_hash(newer.buffers);
  const auto in_old = index_of_ids(older), in_new = index_of_ids(newer);
  for (const std::string& id : older.ids)
    if (!in_new.contains(id)) difference.removed.push_back(id);
  for (std::size_t i = 0; i < newer.ids.size(); ++i) {
    const auto found = in_old.find(newer.ids[i]);
    if (found == in_old.end()) {
      difference.added.push_back(newer.ids[i]);
      continue;
    }
    const Buffer& before = older.buffers[found->second];
    const Buffer& after = newer.buffers[i];
    if (before.size != after.size)
      difference.resized.push_back(newer.ids[i]);
    else if (!same_times(before, after))
      difference.retimed.push_back(newer.ids[i]);
    else if (older.offsets[found->second] != newer.offsets[i])
      difference.moved.push_back(newer.ids[i]);
  }
  return difference;
}

std::string difference_table(const PlanDifference& difference) {
  const double change = 100.0 * (static_cast<double>(difference.new_peak) /
                                     static_cast<double>(std::max<std::size_t>(difference.old_peak, 1)) -
                                 1);
  std::string text =
      fmt::format("\ncompared with the older plan{}\n", difference.same_instance ? " of the same instance" : "");
  text += fmt::format("peak         {} before, {} now ({:+.2f} %)\n", format_bytes_exactly(difference.old_peak),
                      format_bytes_exactly(difference.new_peak), change);
  const auto row = [&](const char* name, const std::vector<std::string>& ids) {
    if (!ids.empty()) text += fmt::format("{:<12} {}: {}\n", name, ids.size(), list_ids(ids));
  };
  row("added", difference.added);
  row("removed", difference.removed);
  row("resized", difference.resized);
  row("retimed", difference.retimed);
  row("moved", difference.moved);
  return text;
}

nlohmann::ordered_json difference_json(const PlanDifference& difference) {
  return {{"same_instance", difference.same_instance},
          {"old_peak", difference.old_peak},
          {"new_peak", difference.new_peak},
          {"added", difference.added},
          {"removed", difference.removed},
          {"resized", difference.resized},
          {"retimed", difference.retimed},
          {"moved", difference.moved}};
}

}  // namespace plimsoll::internal
