// TraceRecorder: while it lives, writes the events of every arena of the process to a trace file.
//
//   TraceRecorder recorder({.path = "run.trace"});
//   for (std::uint64_t step = 0; step < 100; ++step) {
//     trace_step(step);
//     trace_phase("forward");
//     ...
//   }
//   recorder.finish();                       // run.trace is complete; read_trace_file() reads it
//
// A stream is written to "run.trace.partial" as it grows and gets its name at the end; after a crash the partial file
// is readable up to its last complete block. A ring keeps the last `max_bytes` in memory and writes them when finished
// or on request. Blocks that are live at the start are recorded too, so that a trace is complete.
//
// Memory: 64 KiB per thread that allocates while it records, the names (16 MiB at most), and a ring's bytes;
// buffered_bytes() counts them. What does not fit is dropped and counted; nothing waits for it.
// Cost: while nothing records, one load and a predicted branch per allocation or free; else some tens of nanoseconds
// and, once per 64 KiB of a thread's events, a write under a lock. Thread safety: every method may be called from any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

class Arena;
namespace internal {
class TraceSession;
}  // namespace internal
struct Chunk;

enum class TraceMode { kStream, kRing };

struct TraceOptions {
  std::filesystem::path path;
  TraceMode mode = TraceMode::kStream;
  std::size_t max_bytes = std::size_t{1} << 30;  // Of the file, or of the ring. At least 128 KiB.
};

struct TraceCounters {
  std::uint64_t events = 0;  // Recorded, including the dropped ones.
  std::uint64_t dropped_events = 0;
  std::uint64_t file_bytes = 0;      // Written so far (stream) or held (ring).
  std::uint64_t buffered_bytes = 0;  // Memory that the recorder holds.
};

class PLIMSOLL_API TraceRecorder {
 public:
  // Starts. Throws FailedPrecondition while another one records, InvalidArgument when the maximum is too small,
  // NotFound or Error when the file cannot be created.
  explicit TraceRecorder(TraceOptions options);
  ~TraceRecorder();  // As finish(), but errors are only logged.
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // Stops and completes the file. Throws Error when it could not be written, now or before. A second call does nothing.
  void finish();

  // Ring only (otherwise FailedPrecondition): writes what it holds now to `path` and continues.
  void save(const std::filesystem::path& path);

  // Stream only (otherwise FailedPrecondition): afterwards the partial file has every event up to now, for readers of
  // the growing file. Threads that record wait meanwhile. Throws Error when it could not be written.
  void flush();

  TraceCounters counters() const;

 private:
  void begin(TraceOptions options);
  std::unique_ptr<TraceSession> session_;
};

// Markers, on the calling thread; nothing is written while nothing records. Text is cut at 1 KiB. Text of the form
// "@word {json}" is for programs: docs/trace_format.md lists the words.
PLIMSOLL_API void trace_step(std::uint64_t number) noexcept;
PLIMSOLL_API void trace_phase(std::string_view name) noexcept;
PLIMSOLL_API void trace_text(std::string_view text) noexcept;
// The last step that any thread marked, recorded or not; empty before the first.
PLIMSOLL_API std::optional<std::uint64_t> last_marked_step() noexcept;
PLIMSOLL_API bool trace_is_recording() noexcept;  // For callers that would have to build the text first.

// Records for programs: an object that holds tensors was opened ("session", "tape"), was closed, or now has `count`
// parts.
PLIMSOLL_API void trace_opened(const char* kind, const void* id, bool persistent = false) noexcept;
PLIMSOLL_API void trace_closed(const char* kind, const void* id) noexcept;
PLIMSOLL_API void trace_size(const char* kind, const void* id, std::size_t count) noexcept;
// The block now has this category and name.
PLIMSOLL_API void trace_named(std::uint64_t block, const char* category, std::string_view name) noexcept;
PLIMSOLL_API void trace_ladder(std::string_view rung, std::size_t freed_bytes) noexcept;
PLIMSOLL_API void trace_budget(std::string_view name, std::string_view parent, std::size_t limit) noexcept;

// Called when recording begins, so that a higher layer can add the names of existing tensors. Set once at program
// start.
void set_trace_begin_hook(void (*hook)()) noexcept;

// Called by arenas.
class TraceHooks {
 public:
  static void arena_made(Arena& arena) noexcept;
  static void arena_ends(Arena& arena) noexcept;
  static void took(Arena& arena, const Chunk& chunk) noexcept;
  static void gives(Arena& arena, const Chunk& chunk) noexcept;

 private:
  friend class TraceRecorder;
  static void watch(TraceSession& session, Arena& arena);
  static void unwatch(Arena& arena) noexcept;
  static void record_existing(TraceSession& session, const std::vector<std::string>& texts);
  static void note_committed(Arena& arena, std::uint32_t index) noexcept;
};

}  // namespace plimsoll
