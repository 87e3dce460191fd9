// TraceHistory: a trace as the lives of its blocks, from which reports and findings are made.
//
//   const TraceHistory history = read_trace_history("run.trace");
//   for (const TracedBlock& block : history.blocks)
//     if (block.died == TracedBlock::kNever) std::cout << history.names[history.labels[block.label].op] << '\n';
//
// A moment is the position of an allocation or a free among all of them; what is live "at" it is live after it. A block
// that a plan ran in appears as the values inside it and the unused rest, each a block of its own (plan_runs.h).
// Thread safety: plain data. Cost: about 36 bytes per moment, and 56 per event more while it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"
#include "plimsoll/memory/trace/trace_file.h"

namespace plimsoll {

struct TracedBlock {
  static constexpr std::uint32_t kNever = UINT32_MAX;
  std::uint32_t born = 0;       // The moment of its allocation.
  std::uint32_t died = kNever;  // The moment it was freed.
  std::uint32_t label = 0, arena = 0, thread = 0;
  std::uint64_t size = 0, requested = 0, offset = 0;
};

// What many blocks share. Names are indices into the history's names.
struct TracedLabel {
  std::uint32_t op = 0, scope = 0, name = 0, budget = 0, site = 0;
  Category category = Category::kOther;
  std::uint8_t dtype = 0, rank = 0;
  bool has_shape = false;
  bool is_unused = false;  // A part of a plan's block that no known value uses.
  std::array<std::uint32_t, BlockLabel::kSizes> sizes{};

  bool operator==(const TracedLabel&) const = default;
};

enum class MarkKind : std::uint8_t { kStep, kPhase, kText, kRefused, kLadder };

struct TracedMark {
  MarkKind kind = MarkKind::kText;
  std::uint32_t moment = 0;  // The first moment after it.
  std::uint32_t arena = 0;
  std::int64_t time_ns = 0;
  std::uint64_t number = 0;              // A step's number; bytes asked for; bytes a rung freed.
  std::uint32_t op = 0, scope = 0;       // For a refused request, like the next two lines.
  std::uint32_t budget = 0, device = 0;  // Which one refused: the budget or, if that has no name, the device.
  std::uint64_t limit = 0, in_use = 0, sufficient = 0;  // Bytes; 0 where the trace is too old to know.
  std::string text;                                     // A phase's or rung's name, a refusal's message, or any text.
};

struct TracedCommit {
  std::uint32_t moment = 0, arena = 0;
  std::uint64_t bytes = 0;
};

struct TracedBudget {
  std::string name, parent;
  std::uint64_t limit = 0;
  std::uint32_t moment = 0;  // The first moment after it was made.
};

struct TracedForecast {
  bool known = false;
  std::uint64_t peak_bytes = 0, smallest_budget_bytes = 0, batch_size = 0;
  std::array<std::uint64_t, kCategories> by_category{};
};

// Something that holds tensors and was opened while recording: a session, a tape, a graph that grew.
struct TracedHolder {
  struct Size {
    std::uint32_t moment;
    std::uint64_t count;
  };
  std::string kind, name;
  std::uint64_t id = 0;
  std::size_t number = 1;  // Among those of its kind, in the order they appeared.
  bool persistent = false;
  bool opened = false, closed = false;
  std::int64_t opened_ns = 0, closed_ns = 0;
  std::uint32_t opened_moment = 0, closed_moment = 0;
  std::vector<Size> sizes;  // Its recorded sizes, in order of time.
};

// Runs of a planned step that recompute or spill, and what larger budgets would do for them.
struct TracedRecompute {
  struct Point {
    std::uint64_t bytes = 0;
    double slowdown = 1;
  };
  std::string where;                     // Who runs it: "step", "session", "function".
  std::uint64_t natural_bytes = 0;       // Of its blocks, without a budget.
  Point now;                             // With the plan that it runs.
  std::vector<Point> larger;             // Leaner to larger, each faster than the one before.
  std::uint64_t repeats = 0, drops = 0;  // In one run: steps that run again, values that are dropped for a while,
  std::uint64_t stores = 0, loads = 0;   // and those that are stored and loaded,
  std::uint64_t stored_bytes = 0;        // with so many bytes.
  std::uint32_t moment = 0;
};

// What budgets that evict did, in all.
struct TracedEvictions {
  std::uint64_t drops = 0, dropped_bytes = 0, stores = 0, stored_bytes = 0;
  std::uint64_t repeats = 0, loads = 0, loaded_bytes = 0;
  std::string budget;  // The last one.
};

struct TraceHistory {
  std::vector<std::string> names;
  std::vector<TraceArena> arenas;
  std::vector<TracedLabel> labels;
  std::vector<TracedBlock> blocks;    // By birth.
  std::vector<std::int64_t> times;    // By moment: nanoseconds since recording began.
  std::vector<std::uint32_t> owner;   // By moment: its block.
  std::vector<TracedCommit> commits;  // By moment.
  std::vector<TracedMark> marks;      // By time.
  std::vector<TracedBudget> budgets;  // In the order they were made.
  std::vector<TracedHolder> holders;
  TracedForecast forecast;
  std::vector<TracedRecompute> recomputes;
  TracedEvictions evictions;
  std::uint64_t events = 0, dropped_events = 0, unknown_frees = 0;
  std::uint64_t plan_runs = 0, expanded_plan_runs = 0;  // Blocks of plans; those expanded into their values.
  std::size_t existing = 0;                             // Blocks that existed when recording began.
  std::int64_t duration_ns = 0, start_unix_ns = 0;
  bool ring = false, complete = true;
  std::uint32_t process = 0;

  bool is_birth(std::uint32_t moment) const { return blocks[owner[moment]].born == moment; }
};

// `most_planned`: the most moments inside plans; beyond that, only every n-th run of a plan is expanded.
PLIMSOLL_API TraceHistory make_trace_history(const TraceFile& trace, std::size_t most_planned = 600'000);
// make_trace_history(read_trace_file(path)), in less than half of the memory. Throws what read_trace_file() throws.
PLIMSOLL_API TraceHistory read_trace_history(const std::filesystem::path& path, std::size_t most_planned = 600'000);

}  // namespace plimsoll
