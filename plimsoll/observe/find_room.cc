// What the limit leaves: how near the peak came, and the batch that would fit.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plimsoll/base/bytes.h"
#include "plimsoll/observe/findings.h"

namespace plimsoll {
namespace {

// The batch, as inputs have it: the leading size that most bytes of inputs share at the peak; 0 when there are none.
std::uint64_t batch_at_peak(const TraceHistory& history, const RunSummary& run) {
  if (history.forecast.batch_size > 0) return history.forecast.batch_size;
  std::map<std::uint32_t, std::uint64_t> bytes;
  for (const std::uint32_t i : live_blocks(history, run.peak_moment)) {
    const TracedLabel& label = history.labels[history.blocks[i].label];
    if (label.category == Category::kActivations && label.has_shape && label.rank >= 2)
      bytes[label.sizes[0]] += history.blocks[i].size;
  }
  std::uint64_t best = 0, most = 0;
  for (const auto& [size, sum] : bytes)
    if (sum > most) best = size, most = sum;
  return best > 1 ? best : 0;
}

}  // namespace

void find_room(const TraceHistory& history, const RunSummary& run, std::vector<Finding>& findings) {
  if (run.limit_bytes == 0 || run.peak_bytes == 0) return;
  const double use = static_cast<double>(run.peak_bytes) / static_cast<double>(run.limit_bytes);
  const bool tight = run.refusals > 0 || use > 0.9;
  if (!tight && use < 0.02) return;  // A device's limit that is far away.
  const auto of = [&](Category category) { return run.peak_by_category[static_cast<std::size_t>(category)]; };
  const std::uint64_t moving = of(Category::kActivations) + of(Category::kInputs) + of(Category::kWorkspace);
  const std::uint64_t fixed = run.peak_bytes - moving;
  const std::uint64_t batch = batch_at_peak(history, run);
  std::string remedy;
  if (batch > 0 && moving > 0 && run.limit_bytes > fixed) {
    const std::uint64_t fits = (run.limit_bytes - fixed) * batch / moving;
    remedy =
        fmt::format("a batch of about {} would {} (estimated: {} of the peak grow with the batch of {}, {} do not)",
                    fits, fits < batch ? "fit" : "still fit", format_bytes(moving), batch, format_bytes(fixed));
  } else if (tight) {
    remedy = "raise the limit, or use a smaller batch";
  }
  if (!tight && remedy.empty()) return;
  findings.push_back({.kind = "room",
                      .level = tight ? FindingLevel::kWarning : FindingLevel::kNote,
                      .title = fmt::format("The peak is {:.0f} % of the {}", 100 * use, run.limit_name),
                      .evidence = fmt::format("{} of {}", format_bytes(run.peak_bytes), format_bytes(run.limit_bytes)),
                      .remedy = std::move(remedy),
                      .bytes = run.peak_bytes,
                      .moment = run.peak_moment});
}

}  // namespace plimsoll
