#include "plimsoll/observe/run_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/observe/budget_peaks.h"

namespace plimsoll {
namespace {

// Walks all moments once.
class Walk {
 public:
  explicit Walk(const TraceHistory& history) : history_(history) {
    run_.arenas.resize(history.arenas.size());
    live_.resize(history.arenas.size());
    reserved_.resize(history.arenas.size());
  }

  RunSummary go() && {
    std::size_t mark = 0, commit = 0;
    const auto moments = static_cast<std::uint32_t>(history_.times.size());
    for (std::uint32_t moment = 0; moment <= moments; ++moment) {
      for (; commit < history_.commits.size() && history_.commits[commit].moment <= moment; ++commit)
        committed(history_.commits[commit]);
      for (; mark < history_.marks.size() && history_.marks[mark].moment <= moment; ++mark)
        pass(history_.marks[mark], moment);
      if (moment == history_.existing) run_.live_at_start = total_;
      if (moment < moments) apply(moment);
    }
    if (!run_.steps.empty()) {
      run_.steps.back().end_moment = moments;
      run_.steps.back().end_ns = history_.duration_ns;
    }
    run_.live_at_end = total_;
    for (std::size_t arena = 0; arena < live_.size(); ++arena) run_.arenas[arena].live_at_end = live_[arena];
    choose_limit();
    return std::move(run_);
  }

 private:
  void committed(const TracedCommit& commit) {
    if (commit.arena >= reserved_.size()) return;
    all_reserved_ += commit.bytes - reserved_[commit.arena];
    reserved_[commit.arena] = commit.bytes;
    ArenaSummary& arena = run_.arenas[commit.arena];
    arena.peak_reserved_bytes = std::max(arena.peak_reserved_bytes, commit.bytes);
    run_.peak_reserved_bytes = std::max(run_.peak_reserved_bytes, all_reserved_);
  }

  void pass(const TracedMark& mark, std::uint32_t moment) {
    if (mark.kind == MarkKind::kRefused) {
      ++run_.refusals;
      if (!refused_ || mark.number >= refused_->number) refused_ = &mark;
    }
    if (mark.kind == MarkKind::kPhase) phase_ = &mark;
    if (mark.kind != MarkKind::kStep) return;
    if (!run_.steps.empty()) {
      run_.steps.back().end_moment = moment;
      run_.steps.back().end_ns = mark.time_ns;
    }
    run_.steps.push_back({.number = mark.number,
                          .first_moment = moment,
                          .begin_ns = mark.time_ns,
                          .live_at_start = total_,
                          .peak_bytes = total_});
  }

  void apply(std::uint32_t moment) {
    const TracedBlock& block = history_.blocks[history_.owner[moment]];
    const auto category = static_cast<std::size_t>(history_.labels[block.label].category);
    const bool unused = history_.labels[block.label].is_unused;
    if (block.born != moment) {
      if (unused) unused_ -= block.size;
      total_ -= block.size;
      requested_ -= block.requested;
      by_category_[category] -= block.size;
      live_[block.arena] -= block.size;
      return;
    }
    if (unused) unused_ += block.size;
    total_ += block.size;
    requested_ += block.requested;
    by_category_[category] += block.size;
    live_[block.arena] += block.size;
    ArenaSummary& arena = run_.arenas[block.arena];
    arena.peak_bytes = std::max(arena.peak_bytes, live_[block.arena]);
    if (!run_.steps.empty()) run_.steps.back().peak_bytes = std::max(run_.steps.back().peak_bytes, total_);
    if (total_ > run_.peak_bytes || (total_ == run_.peak_bytes && unused_ < run_.peak_unused_bytes)) at_peak(moment);
  }

  void at_peak(std::uint32_t moment) {
    run_.peak_bytes = total_;
    run_.peak_requested_bytes = requested_;
    run_.peak_moment = moment;
    run_.peak_ns = history_.times[moment];
    run_.peak_by_category = by_category_;
    run_.peak_unused_bytes = unused_;
    run_.reserved_at_peak = all_reserved_;
    if (!run_.steps.empty()) run_.peak_step = run_.steps.back().number;
    run_.peak_phase = phase_ ? phase_->text : "";
  }

  // The limit line of the chart: the limit of the budget that refused most; else of the one that came nearest to its
  // limit; else that of the devices.
  void choose_limit() {
    const std::vector<BudgetPeak> peaks = budget_peaks(history_);
    const BudgetPeak* nearest = refused_ ? budget_that_refused(history_, peaks, *refused_) : nullptr;
    if (!nearest) nearest = nearest_to_limit(history_, peaks);
    if (nearest) {
      run_.limit_name = fmt::format("budget \"{}\"", history_.budgets[nearest->budget].name);
      run_.limit = {nearest->limit_bytes, nearest->peak_bytes, nearest->outside_bytes, nearest->moment,
                    nearest->by_category};
      run_.limit_bytes = nearest->limit_bytes + nearest->outside_bytes;
      return;
    }
    for (std::size_t arena = 0; arena < history_.arenas.size(); ++arena) {
      if (run_.arenas[arena].peak_bytes == 0) continue;
      if (run_.limit_bytes == 0)
        run_.limit_name = fmt::format("limit of \"{}\"", history_.arenas[arena].name);
      else
        run_.limit_name = "limits of all devices";
      run_.limit_bytes += history_.arenas[arena].limit;
    }
    run_.limit = {run_.limit_bytes, run_.peak_bytes, 0, run_.peak_moment, run_.peak_by_category};
  }

  const TraceHistory& history_;
  RunSummary run_;
  std::uint64_t unused_ = 0;
  std::uint64_t total_ = 0, requested_ = 0, all_reserved_ = 0;
  BytesByCategory by_category_{};
  std::vector<std::uint64_t> live_, reserved_;  // Per arena.
  const TracedMark* phase_ = nullptr;
  const TracedMark* refused_ = nullptr;  // The largest refused request.
};

}  // namespace

RunSummary summarize(const TraceHistory& history) { return Walk(history).go(); }

std::vector<std::uint32_t> live_blocks(const TraceHistory& history, std::uint32_t moment) {
  std::vector<std::uint32_t> live;
  for (std::uint32_t i = 0; i < history.blocks.size(); ++i)
    if (history.blocks[i].born <= moment && history.blocks[i].died > moment) live.push_back(i);
  std::stable_sort(live.begin(), live.end(),
                   [&](auto a, auto b) { return history.blocks[a].size > history.blocks[b].size; });
  return live;
}

std::string shape_text(const TracedLabel& label) {
  if (!label.has_shape) return "";
  std::string text = "[";
  for (std::size_t i = 0; i < label.rank; ++i) {
    if (i > 0) text += ", ";
    if (i == label.sizes.size()) return text + "...]";
    text += fmt::format("{}", label.sizes[i]);
  }
  return text + "]";
}

std::string label_text(const TraceHistory& history, const TracedLabel& label) {
  std::string text = fmt::format("\"{}\"", history.names[label.op]);
  if (label.name != 0) text += fmt::format(" named \"{}\"", history.names[label.name]);
  if (label.scope != 0) text += fmt::format(" in scope \"{}\"", history.names[label.scope]);
  if (label.site != 0) text += fmt::format(" at {}", history.names[label.site]);
  return text;
}

}  // namespace plimsoll
