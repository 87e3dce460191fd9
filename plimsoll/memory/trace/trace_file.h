// Trace files: the events in the arenas of a process. TraceRecorder writes them.
//
//   TraceFile trace = read_trace_file("run.trace");
//   for (const TraceEvent& event : trace.events)
//     if (event.kind == TraceEventKind::kAllocate) std::cout << trace.names[event.op] << ' ' << event.size << '\n';
//
// A truncated file (the process died) is read up to its last complete block; `complete` is then false. Nothing in a
// file is trusted: numbers are checked, sizes are bounded by TraceLimits, and damage throws Corruption with its offset.
// Layout: docs/trace_format.md. Thread safety: plain functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {

enum class TraceEventKind : std::uint8_t {
  kAllocate = 1,
  kFree = 2,       // Also of a block that was allocated before recording began, or whose allocation a ring dropped.
  kExisting = 3,   // Live when recording began. It may appear as kAllocate too: compare the block's id.
  kCommitted = 4,  // The arena's committed pages changed; `size` has the bytes.
  kRefused = 5,    // An OutOfMemory: `requested`, `op`, `scope`; from version 4 on also `text`, `budget` (0: the device
                   // refused), `name` (the device), `size` (the limit), `offset` (in use), `number` (a limit that
                   // would do). `arena` is set before version 4 only.
  kStep = 6,       // Marker: `number` begins.
  kPhase = 7,      // Marker: `text` ("forward") begins.
  kText = 8,       // Marker: anything.
  kArenaEnded = 9,  // All its blocks are gone.
  kPlanSteps = 10,  // `size` more steps are done of the plan `number`, whose extent `step` is `block`; `requested` of
                    // them are timed (all or none): durations[`offset`], ... of the file, in nanoseconds, up to now.
};

// Fields that a kind does not use are zero. Names are indices into the names; 0 is "".
struct TraceEvent {
  TraceEventKind kind = TraceEventKind::kText;
  Category category = Category::kOther;
  std::uint8_t dtype = 0, rank = 0;
  bool has_shape = false;
  std::int64_t time_ns = 0;         // Since recording began.
  std::uint32_t thread = 0;         // Small number; reused after a thread has ended.
  std::uint32_t system_thread = 0;  // The operating system's thread id.
  std::uint32_t arena = 0;          // Index into the arenas.
  std::uint64_t block = 0;          // Unique among the blocks of the process.
  std::uint64_t size = 0;           // Bytes, rounding included.
  std::uint64_t requested = 0;
  std::uint64_t offset = 0;  // In the arena's range.
  std::uint64_t number = 0;
  std::uint32_t op = 0, scope = 0, name = 0, budget = 0, site = 0;
  std::uint32_t step = 0;
  std::uint32_t sizes[BlockLabel::kSizes] = {0, 0, 0, 0};
  std::string text;
};

struct TraceArena {
  std::string name;  // The device: "CPU:0".
  std::uint64_t limit = 0;
  std::uint64_t page_bytes = 0;
};

// What is where in planned blocks while a run of the plan uses them.
struct TracePlan {
  struct Value {
    TraceEvent label;                              // An allocation: its label, size, and offset in the extent.
    std::uint32_t extent = 0, first = 0, end = 0;  // Live from the start of step `first` to that of step `end`.
  };
  struct Phase {
    std::uint32_t first = 0, name = 0;  // Steps from `first` to the next phase have that name.
  };
  std::uint32_t steps = 0;
  std::vector<Value> values;
  std::vector<Phase> phases;  // By step.
};

struct TraceFile {
  bool ring = false;      // Older events may have been dropped.
  bool complete = false;  // Recording ended properly.
  std::int64_t start_unix_ns = 0;
  std::uint32_t process = 0;
  std::uint64_t dropped_events = 0;  // Because of a full ring, a size limit or a failing disk.
  std::uint64_t readable_bytes = 0;  // Up to the last complete block.
  std::vector<std::string> names;    // [0] is "".
  std::vector<TraceArena> arenas;
  std::vector<TracePlan> plans;
  std::vector<std::uint32_t> durations;  // Of steps of plans, in file order.
  std::vector<TraceEvent> events;        // By time; events of one thread keep their order.
};

struct TraceLimits {
  std::size_t max_file_bytes = std::size_t{4} << 30;
  std::size_t max_events = 20'000'000;
  std::size_t max_names = 1'000'000;
  std::size_t max_arenas = 65'536;
  bool verify_checksums = true;
};

// Throws NotFound, InvalidArgument (more bytes than the limit), Corruption (offset and reason; also for passed limits).
PLIMSOLL_API TraceFile read_trace_file(const std::filesystem::path& path, const TraceLimits& limits = {});
PLIMSOLL_API TraceFile parse_trace(std::span<const std::byte> bytes, const TraceLimits& limits = {});

// The same without keeping the events: calls on_event(trace, event) in file order, that is by thread and block, once
// all names that the event refers to are known.
PLIMSOLL_API TraceFile scan_trace(std::span<const std::byte> bytes, const TraceLimits& limits,
                                  const std::function<void(const TraceFile&, TraceEvent&&)>& on_event);

}  // namespace plimsoll
