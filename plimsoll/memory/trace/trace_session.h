// TraceSession: the state of a TraceRecorder: names, arenas, threads' buffers and the file.
//
// There is at most one in the process. Its lock is taken before all others of the memory layer, never inside a thread's
// gate. A thread adds to its buffer inside its gate without the lock; a thread with the lock is the only one to touch
// any buffer.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/trace/trace_buffer.h"
#include "plimsoll/memory/trace/trace_recorder.h"

namespace plimsoll::internal {

class TraceSession {
 public:
  // Creates the file of a stream. Requires the lock, as all below.
  explicit TraceSession(TraceOptions options);
  ~TraceSession();
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  std::int64_t start_ns() const noexcept { return start_ns_; }
  std::uint32_t add_arena(const std::string& name, std::size_t limit, std::size_t page_bytes);  // Its index.
  std::uint32_t add_name(const char* name);                                                     // Its number.
  static constexpr std::uint32_t kNoPlan = UINT32_MAX;
  std::uint32_t add_plan(std::vector<std::byte> encoded);  // Its number; kNoPlan when there is no room for it.

  struct ThreadBuffer {
    TraceBuffer events;
    std::uint32_t thread = 0, system_thread = 0;
    bool idle = false;  // Its thread has ended.
  };
  ThreadBuffer* attach(std::uint32_t thread);
  void detach(ThreadBuffer& buffer);
  void flush(ThreadBuffer& buffer);
  void flush_all();  // Requires that the threads are stopped or no longer record.

  void require_written() const;                  // Throws the first error so far.
  void complete();                               // Ends the file. Throws the first error.
  void save(const std::filesystem::path& path);  // Of a ring.
  TraceCounters counters() const;
  const TraceOptions& options() const noexcept { return options_; }

 private:
  struct RingBlock {
    std::vector<std::byte> bytes;
    std::uint32_t events = 0;
  };
  using Sink = std::function<void(std::span<const std::byte>)>;
  void write_stream(std::span<const std::byte> bytes);
  // What is defined; what is beyond the counts is not yet written.
  struct Written {
    std::size_t names = 0, arenas = 0, plans = 0;
  };
  void write_definitions(const Sink& sink, const Written& before) const;
  void write_new_definitions();
  void write_end(const Sink& sink) const;
  void write_ring(const Sink& sink) const;

  const TraceOptions options_;
  const std::filesystem::path partial_;  // Of a stream.
  const int process_;
  const std::int64_t start_ns_;
  std::int64_t start_unix_ns_;
  int file_ = -1;
  int error_ = 0;  // The first write error; nothing is written after it.
  std::uint64_t events_ = 0, dropped_ = 0, file_bytes_ = 0;
  std::vector<std::string> names_;  // Number 0, "", is not among them: [0] has number 1.
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::size_t name_bytes_ = 0, plan_bytes_ = 0;
  std::vector<TraceArena> arenas_;
  std::vector<std::vector<std::byte>> plans_;  // Encoded; empty once a stream has written them.
  Written written_;
  std::vector<std::unique_ptr<ThreadBuffer>> buffers_;
  std::deque<RingBlock> ring_;
};

}  // namespace plimsoll::internal
