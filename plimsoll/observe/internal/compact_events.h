// CompactEvents: the events of a trace in 56 bytes each (a TraceEvent takes 144), for traces with millions of them.
//
//   CompactEvents events;
//   const TraceFile rest = scan_trace(bytes, {}, [&](const TraceFile&, TraceEvent&& event) { events.add(event); });
//   events.sort();
//   for (const CompactEvent& event : events.all()) ...
//
// What allocations share is a label, kept once. Markers, refusals and steps of plans are rarer and are kept whole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

// Labels, each once, numbered in the order they came. Traces can have almost as many labels as blocks: beside a label
// this takes 8 to 16 bytes.
class LabelSet {
 public:
  std::uint32_t number_of(const TracedLabel& label);  // Added if it is new.
  const std::vector<TracedLabel>& all() const noexcept { return labels_; }
  std::vector<TracedLabel> take() && { return std::move(labels_); }
  void finish() { table_ = {}; }  // No number is asked for any more.

 private:
  void grow();

  std::vector<TracedLabel> labels_;
  std::vector<std::uint32_t> table_;  // Numbers + 1 by hash, 0: free; a power of two, at most half full.
};

// Fields as in TraceEvent.
struct CompactEvent {
  std::int64_t time_ns = 0;
  std::uint64_t block = 0, size = 0, requested = 0, offset = 0;
  std::uint32_t label = 0;  // Of an allocation: its label; of an event that is kept whole: its number.
  std::uint32_t thread = 0, arena = 0;
  TraceEventKind kind = TraceEventKind::kText;

  bool is_allocation() const noexcept { return kind == TraceEventKind::kAllocate || kind == TraceEventKind::kExisting; }
};

class CompactEvents {
 public:
  void reserve(std::size_t events) { all_.reserve(events); }
  void add(TraceEvent event);
  void sort();  // When all are there: by time; those of one time stay in their order.

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
