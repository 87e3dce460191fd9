// ExportedRun: the exported part of a history, as births and deaths of blocks in order; the input of all exporters.
//
//   run.for_each([&](const BlockEvent& event) { live += event.is_birth ? event.block->size : -event.block->size; });
//
// Blocks that were live before the first exported moment are born at its time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/observe/run_summary.h"
#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

struct BlockEvent {
  const TracedBlock* block = nullptr;
  std::uint32_t number = 0;  // The block's index in the history.
  std::int64_t time_ns = 0;
  bool is_birth = false;
  std::uint32_t end = 0;  // The moment after it.
};

// "3:5", or "3" for one. Throws InvalidArgument for other texts.
struct ExportedSteps {
  std::uint64_t first = 0, last = 0;
};
ExportedSteps parse_exported_steps(const std::string& text);

// ExportOptions::at. Throws InvalidArgument for other texts.
struct ExportedMoment {
  enum class Kind { kPeak, kEnd, kStep, kSeconds } kind = Kind::kPeak;
  std::uint64_t step = 0;
  double seconds = 0;
};
ExportedMoment parse_exported_moment(const std::string& text);

class ExportedRun {
 public:
  // `steps` as in ExportOptions. Throws InvalidArgument for text that is not "A:B" and for steps that do not exist.
  ExportedRun(const TraceHistory& history, const std::string& steps);

  void for_each(FunctionRef<void(const BlockEvent&)> f) const;
  // The same for the moments before `end`.
  void for_each_before(std::uint32_t end, FunctionRef<void(const BlockEvent&)> f) const;
  // Called now and then with the share of the run that is done.
  void on_progress(std::function<void(double)> f) { progress_ = std::move(f); }
  void report_progress(double share) const {  // For exporters that walk the events themselves.
    if (progress_) progress_(share);
  }

  // The moment that ExportOptions::at names, as the first one after it. Throws InvalidArgument when it is not exported.
  std::uint32_t end_at(const std::string& at) const;

  bool is_exported(const TracedMark& mark) const { return mark.time_ns >= begin_ns_ && mark.time_ns <= end_ns_; }
  const TraceHistory& history() const noexcept { return history_; }
  const std::vector<StepSummary>& steps() const noexcept { return steps_; }  // The exported ones.
  std::int64_t begin_ns() const { return begin_ns_; }
  std::int64_t end_ns() const { return end_ns_; }
  std::uint64_t peak_bytes() const noexcept { return peak_bytes_; }

  std::string name(std::uint32_t number) const;  // Valid UTF-8 on one line.
  // Scopes, outermost first, then the operation.
  std::vector<std::string> frames(const TracedLabel& label) const;
  // "name w, shape [4, 3] float32, budget fit": what a viewer has no field for; "" when there is nothing.
  std::string details(const TracedLabel& label) const;
  // The source line that opened the scope; 0 and "" when it was not recorded.
  struct Site {
    std::string file;
    std::uint32_t line = 0;
  };
  Site site(const TracedLabel& label) const;

 private:
  void select_steps(const std::string& steps);
  void find_peak();

  const TraceHistory& history_;
  std::vector<StepSummary> steps_;
  std::uint32_t first_ = 0, end_ = 0;  // Exported moments: [first, end).
  std::int64_t begin_ns_ = 0, end_ns_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint32_t peak_end_ = 0;  // The moment after the peak.
  std::function<void(double)> progress_;
};

}  // namespace plimsoll::internal
