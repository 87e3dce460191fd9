// RunSummary: a run's memory in numbers: its peak, what was live then, each step.
//
//   const RunSummary run = summarize(history);
//   format_bytes(run.peak_bytes)                       // of all devices together
//   run.peak_by_category[size_t(Category::kActivations)]
//
// All bytes are those of blocks, rounding included, as the arenas count them. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

using BytesByCategory = std::array<std::uint64_t, kCategories>;

struct StepSummary {
  std::uint64_t number = 0;
  std::uint32_t first_moment = 0, end_moment = 0;  // [first, end)
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint64_t live_at_start = 0, peak_bytes = 0;
};

struct ArenaSummary {
  std::uint64_t peak_bytes = 0, peak_reserved_bytes = 0, live_at_end = 0;
};

// How near a limit was. What is held outside a budget does not count against it.
struct LimitUse {
  std::uint64_t limit_bytes = 0, peak_bytes = 0, outside_bytes = 0;
  std::uint32_t moment = 0;  // When it peaked.
  BytesByCategory by_category{};
};

struct RunSummary {
  std::uint64_t peak_bytes = 0, peak_requested_bytes = 0;  // At the fullest moment of all devices together.
  std::uint32_t peak_moment = 0;
  std::int64_t peak_ns = 0;
  BytesByCategory peak_by_category{};
  std::uint64_t peak_unused_bytes = 0;     // The part in plans' blocks that no value used; counted as workspace.
  std::optional<std::uint64_t> peak_step;  // The step in which it occurred.
  std::string peak_phase;
  std::uint64_t reserved_at_peak = 0, peak_reserved_bytes = 0;
  std::uint64_t live_at_start = 0, live_at_end = 0;
  std::uint64_t refusals = 0;
  std::vector<ArenaSummary> arenas;
  std::vector<StepSummary> steps;
  std::string limit_name;         // The limit's name: a budget's or a device's.
  std::uint64_t limit_bytes = 0;  // The limit in terms of all bytes in use; 0 when none is known.
  LimitUse limit;
};

PLIMSOLL_API RunSummary summarize(const TraceHistory& history);

// Among moments with the same bytes, the peak is one at which plans leave the least unused.
//
// Live blocks at a moment, largest first.
std::vector<std::uint32_t> live_blocks(const TraceHistory& history, std::uint32_t moment);

// "[32, 24, 64] f32", "" without a shape; "3 x [..]" is the caller's.
std::string shape_text(const TracedLabel& label);
// "matmul in lstm/cell", with the name when it has one.
std::string label_text(const TraceHistory& history, const TracedLabel& label);

}  // namespace plimsoll
