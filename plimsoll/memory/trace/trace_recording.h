// The current recording, and how a thread adds an event to it. For the parts of the recorder.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "plimsoll/base/api.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_session.h"

namespace plimsoll::internal {

// The number changes with every recorder; 0 while there is none.
struct Recording {
  std::mutex mutex;
  std::atomic<std::uint64_t> number{0};  // Changed with the lock held and all threads stopped.
  std::atomic<std::int64_t> start_ns{0};
  std::uint64_t last_number = 0;
  TraceSession* session = nullptr;

  static Recording& instance() noexcept { return instance_; }
  static void prepare();  // Call before the first one: registers the fork handlers.

 private:
  static constinit Recording instance_;
};

enum class TraceTime { kNow, kSameAsBefore };  // Reading the clock is half the cost of an event.

// The calling thread's buffer, valid while `number` is that of the current recording.
struct OwnTraceBuffer {
  std::uint64_t number = 0;
  TraceSession::ThreadBuffer* buffer = nullptr;

  static OwnTraceBuffer& current() noexcept { return current_; }
  // Requires the lock: prepares it for the current recording, and for writing its events when the thread ends.
  void attach(Recording& recording, std::uint32_t thread);

 private:
  static constinit thread_local OwnTraceBuffer current_ __attribute__((tls_model("initial-exec")));
};

// Adds an event: try_add(buffer, time) inside the gate; when it returns false (a new name) or the buffer is full,
// add(session, buffer, time) with the lock.
template <TraceTime kTime = TraceTime::kNow, class TryAdd, class Add>
void record_event(TryAdd&& try_add, Add&& add) noexcept try {
  Recording& recording = Recording::instance();
  ThreadMemory& thread = ThreadMemory::current();
  OwnTraceBuffer& own = OwnTraceBuffer::current();
  const std::int64_t time =
      kTime == TraceTime::kNow ? monotonic_ns() - recording.start_ns.load(std::memory_order_relaxed) : 0;
  if (own.number != 0) {
    const EnterThread inside(thread);
    if (own.number == recording.number.load(std::memory_order_relaxed) && own.buffer->events.has_room() &&
        try_add(own.buffer->events, time))
      return;
  }
  const std::lock_guard lock(recording.mutex);
  if (recording.number == 0) return;
  if (own.number != recording.number) own.attach(recording, thread.id);
  if (!own.buffer->events.has_room()) recording.session->flush(*own.buffer);
  add(*recording.session, own.buffer->events, time);
} catch (const std::exception& error) {
  log_message(LogLevel::warning, fmt::format("trace: an event was lost: {}", error.what()));
}

// An event without names: the same both ways.
template <class Add>
void record_event(Add&& add) noexcept {
  record_event(
      [&](TraceBuffer& buffer, std::int64_t time) {
        add(buffer, time);
        return true;
      },
      [&](TraceSession&, TraceBuffer& buffer, std::int64_t time) { add(buffer, time); });
}

// For rare events whose names may be new: always takes the lock.
void record_with_lock(FunctionRef<void(TraceSession& session, TraceBuffer& buffer, std::int64_t time)> add) noexcept;

// The file of the stream being recorded, with every event up to now in its partial file; "" when there is none.
std::filesystem::path flush_recorded_stream();

}  // namespace plimsoll::internal
