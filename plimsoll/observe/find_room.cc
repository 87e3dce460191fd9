// What the limit leaves free: how close the peak came, and the batch that would fit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

// The size of the first axis that most bytes of some blocks share; 0 when there is none.
template <class Accept>
std::uint64_t leading_size(const TraceHistory& history, std::uint32_t moment, Accept&& accept) {
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (const std::uint32_t i : live_blocks(history, moment)) {
    const TracedBlock& block = history.blocks[i];
    const TracedLabel& label = history.labels[block.label];
    if (label.has_shape && label.rank >= 2 && accept(block, label.category)) bytes[label.sizes[0]] += block.size;
  }
  std::uint64_t best = 0, most = 0;
  for (const auto& [size, sum] : bytes)
    if (sum > most) best = size, most = sum;
  return best > 1 ? best : 0;
}

// The batch of the step around the moment: that of inputs created and freed in it, else that of its results. A whole
// dataset that stays is neither.
std::uint64_t batch_at(const TraceHistory& history, const RunSummary& run, std::uint32_t moment) {
  if (history.forecast.batch_size > 0) return history.forecast.batch_size;
  const auto after = std::upper_bound(run.steps.begin(), run.steps.end(), moment,
                                      [](std::uint32_t m, const StepSummary& step) { return m < step.first_moment; });
  if (after == run.steps.begin() || run.steps.size() < 2) return 0;
  const StepSummary& step = *std::prev(after);
  const std::uint32_t before = after - run.steps.begin() >= 2 ? std::prev(after, 2)->first_moment : 0;
  const std::uint32_t next = after == run.steps.end() ? TracedBlock::kNever : after->end_moment;
  if (const std::uint64_t inputs = leading_size(history, moment, [&](const TracedBlock& block, Category category) {
        return category == Category::kInputs && block.born >= before && block.died <= next;
      }))
    return inputs;
  return leading_size(history, moment, [&](const TracedBlock& block, Category category) {
    return category == Category::kActivations && block.born >= step.first_moment && block.died <= step.end_moment;
  });
}

}  // namespace

void find_room(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  const LimitUse& limit = run.limit;
  if (limit.limit_bytes == 0 || limit.peak_bytes == 0) return;
  const double use = static_cast<double>(limit.peak_bytes) / static_cast<double>(limit.limit_bytes);
  const bool tight = run.refusals > 0 || use > 0.9;
  if (!tight && use < 0.02) return;           // Far below a device's limit.
  if (run.refusals > 0 && use < 0.9) return;  // What was refused matters, not what was used.
  const std::uint64_t moving = growing_with_batch(limit.by_category);
  const std::uint64_t fixed = limit.peak_bytes - moving;
  const std::uint64_t batch = batch_at(history, run, limit.moment);
  std::string remedy;
  if (batch > 0 && moving > 0 && limit.limit_bytes > fixed) {
    const std::uint64_t fits = (limit.limit_bytes - fixed) * batch / moving;
    if (run.refusals > 0 && fits >= batch)
      remedy = "raise the limit, or use a smaller batch";
    else
      remedy =
          fmt::format("a batch of about {} would {} (estimated: {} of the peak grow with the batch of {}, {} do not)",
                      fits, fits < batch ? "fit" : "still fit", format_bytes(moving), batch, format_bytes(fixed));
  } else if (tight) {
    remedy = "raise the limit, or use a smaller batch";
  }
  if (!tight && remedy.empty()) return;
  std::string evidence = fmt::format("{} of {}", format_bytes(limit.peak_bytes), format_bytes(limit.limit_bytes));
  if (limit.outside_bytes > 0)
    evidence += fmt::format("; {} more were in use outside it", format_bytes(limit.outside_bytes));
  findings.push_back({.kind = "room",
                      .level = tight ? FindingLevel::kWarning : FindingLevel::kNote,
                      .title = fmt::format("The peak is {:.0f} % of the {}", 100 * use, run.limit_name),
                      .evidence = std::move(evidence),
                      .remedy = std::move(remedy),
                      .bytes = limit.peak_bytes,
                      .moment = limit.moment});
}

}  // namespace plimsoll
