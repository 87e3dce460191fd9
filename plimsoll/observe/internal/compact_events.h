// CompactEvents: the events of a trace in 56 bytes each (a TraceEvent takes 144), for traces with millions of them.
//
//   CompactEvents events;
//   const TraceFile rest = scan_trace(bytes, {}, [&](const TraceFile&, TraceEvent&& event) { events.add(event); });
//   events.sort();
//   for (const CompactEvent& event : events.all()) ...
//
// The fields that allocations share form a label, stored once. Markers, refusals and steps of plans are rarer and
// stored whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

// Labels, each stored once, numbered in the order they came. Traces can have almost as many labels as blocks: this
// takes 8 to 16 bytes in addition to a label.
class LabelSet {
 public:
  std::uint32_t number_of(const TracedLabel& label);  // Added if it is new.
  const std::vector<TracedLabel>& all() const noexcept { return labels_; }
  std::vector<TracedLabel> take() && { return std::move(labels_); }
  void finish() { table_ = {}; }  // No more numbers are needed.

 private:
  void grow();

  std::vector<TracedLabel> labels_;
  std::vector<std::uint32_t> table_;  // Numbers + 1 by hash, 0: free; a power of two, at most half full.
};

// Fields as in TraceEvent.
struct CompactEvent {
  std::int64_t time_ns = 0;
  std::uint64_t block = 0, size = 0, requested = 0, offset = 0;
  std::uint32_t label = 0;  // For an allocation: its label; for an event stored whole: its number.
  std::uint32_t thread = 0, arena = 0;
  TraceEventKind kind = TraceEventKind::kText;

  bool is_allocation() const noexcept { return kind == TraceEventKind::kAllocate || kind == TraceEventKind::kExisting; }
};

class CompactEvents {
 public:
  void reserve(std::size_t events) { all_.reserve(events); }
  void add(TraceEvent event);
  void sort();  // Call when all are added: sorts by time, keeping the order of equal times.

  const std::vector<CompactEvent>& all() const noexcept { return all_; }
  const TracedLabel& label(const CompactEvent& allocation) const { return labels_.all()[allocation.label]; }
  const TraceEvent& whole(const CompactEvent& event) const { return whole_[event.label]; }

 private:
  std::vector<CompactEvent> all_;
  LabelSet labels_;
  std::vector<TraceEvent> whole_;
};

TracedLabel label_of(const TraceEvent& event);

}  // namespace plimsoll::internal
