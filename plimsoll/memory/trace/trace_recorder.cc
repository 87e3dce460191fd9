#include "plimsoll/memory/trace/trace_recorder.h"

#include <fmt/format.h>
#include <pthread.h>

#include <utility>

#include "plimsoll/base/call_site.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/internal/arena_core.h"
#include "plimsoll/memory/trace/trace_recording.h"

namespace plimsoll {
namespace {

// Writes the thread's last events when it ends.
struct AtThreadEnd {
  ~AtThreadEnd() {
    OwnTraceBuffer& own = OwnTraceBuffer::current();
    Recording& recording = Recording::instance();
    const std::lock_guard lock(recording.mutex);
    if (own.number != 0 && own.number == recording.number) recording.session->detach(*own.buffer);
    own.number = 0;
  }
  bool armed = false;
};
thread_local AtThreadEnd at_thread_end;

using BeginHook = void (*)();
constinit BeginHook begin_hook = nullptr;

constexpr std::uint64_t kNoStep = UINT64_MAX;
constinit std::atomic<std::uint64_t> last_step{kNoStep};

const char* budget_name(const Chunk& chunk) { return chunk.budget ? chunk.budget->interned_name() : ""; }

TracePlace place_of(std::uint32_t arena, const Chunk& chunk) {
  return {arena, chunk.label.id, chunk.size, chunk.offset};
}

// With the lock: new names get numbers.
TraceLabel label_of(TraceSession& session, TraceBuffer* buffer, const Chunk& chunk, const char* budget) {
  const auto number = [&](const char* name) {
    const std::uint32_t made = session.add_name(name);
    if (buffer) buffer->remember_name(name, made);
    return made;
  };
  return {chunk.label,
          chunk.requested,
          number(chunk.label.op),
          number(chunk.label.scope),
          number(chunk.label.name),
          number(budget),
          number(site_text(chunk.label.site))};
}

// Without the lock: false when a name is not in the buffer.
bool find_label(const TraceBuffer& buffer, const Chunk& chunk, TraceLabel& label) noexcept {
  label.label = chunk.label;
  label.requested = chunk.requested;
  return buffer.find_name(chunk.label.op, label.op) && buffer.find_name(chunk.label.scope, label.scope) &&
         buffer.find_name(chunk.label.name, label.name) && buffer.find_name(budget_name(chunk), label.budget) &&
         buffer.find_name(site_text(chunk.label.site), label.site);
}

}  // namespace

constinit Recording Recording::instance_;

void Recording::prepare() {
  ThreadRegistry::instance();  // Its fork handlers come first, so that ours takes its lock before theirs.
  [[maybe_unused]] static const int done =
      pthread_atfork([] { instance_.mutex.lock(); }, [] { instance_.mutex.unlock(); },
                     [] {
                       instance_.number.store(0);
                       instance_.session = nullptr;
                       instance_.mutex.unlock();
                     });
}

constinit thread_local OwnTraceBuffer OwnTraceBuffer::current_;

void OwnTraceBuffer::attach(Recording& recording, std::uint32_t thread) {
  at_thread_end.armed = true;  // Constructs it.
  buffer = recording.session->attach(thread);
  number = recording.number;
}

void internal::record_with_lock(
    FunctionRef<void(TraceSession& session, TraceBuffer& buffer, std::int64_t time)> add) noexcept {
  record_event([](TraceBuffer&, std::int64_t) { return false; }, add);
}

void set_trace_begin_hook(void (*hook)()) noexcept { begin_hook = hook; }

void TraceHooks::note_committed(Arena& arena, std::uint32_t index) noexcept {
  const std::size_t pages = arena.core_->heap.committed_pages();
  if (arena.core_->traced_pages.load(std::memory_order_relaxed) == pages ||
      arena.core_->traced_pages.exchange(pages) == pages)
    return;
  record_event([&](TraceBuffer& buffer, std::int64_t time) {
    buffer.add_committed(time, index, pages << arena.core_->heap.page_shift());
  });
}

void TraceHooks::took(Arena& arena, const Chunk& chunk) noexcept {
  const std::uint32_t index = arena.core_->trace_index.load(std::memory_order_relaxed);
  note_committed(arena, index);
  const TracePlace place = place_of(index, chunk);
  record_event(
      [&](TraceBuffer& buffer, std::int64_t time) {
        TraceLabel label;
        if (!find_label(buffer, chunk, label)) return false;
        buffer.add_block(TraceEventKind::kAllocate, time, place, label);
        return true;
      },
      [&](TraceSession& session, TraceBuffer& buffer, std::int64_t time) {
        buffer.add_block(TraceEventKind::kAllocate, time, place, label_of(session, &buffer, chunk, budget_name(chunk)));
      });
}

void TraceHooks::gives(Arena& arena, const Chunk& chunk) noexcept {
  const TracePlace place = place_of(arena.core_->trace_index.load(std::memory_order_relaxed), chunk);
  record_event([&](TraceBuffer& buffer, std::int64_t time) { buffer.add_place(TraceEventKind::kFree, time, place); });
}

void TraceHooks::arena_made(Arena& arena) noexcept try {
  Recording& recording = Recording::instance();
  const std::lock_guard lock(recording.mutex);
  if (recording.number != 0) watch(*recording.session, arena);
} catch (const std::exception& error) {
  log_message(LogLevel::warning, fmt::format("trace: arena \"{}\" is not recorded: {}", arena.name(), error.what()));
}

void TraceHooks::arena_ends(Arena& arena) noexcept {
  if (!arena.core_->recording()) return;
  arena.core_->mode.set(ArenaMode::kRecording, false);
  const std::uint32_t index = arena.core_->trace_index.load(std::memory_order_relaxed);
  record_event([&](TraceBuffer& buffer, std::int64_t time) { buffer.add_arena_ended(time, index); });
}

void TraceHooks::unwatch(Arena& arena) noexcept { arena.core_->mode.set(ArenaMode::kRecording, false); }

void TraceHooks::watch(TraceSession& session, Arena& arena) {
  if (arena.core_->recording()) return;
  arena.core_->trace_index =
      session.add_arena(arena.name(), arena.limit(), std::size_t{1} << arena.core_->heap.page_shift());
  arena.core_->traced_pages = SIZE_MAX;
  arena.core_->mode.set(ArenaMode::kRecording, true);
}

// Records blocks that already exist. Those allocated since their arena is watched may be among them.
void TraceHooks::record_existing(TraceSession& session, const std::vector<std::string>& texts) {
  struct Existing {
    std::uint32_t arena;
    Chunk chunk;
    const char* budget;
  };
  std::vector<Existing> existing;
  ArenaList::instance().for_each([&](Arena& arena) {
    arena.for_each_live([&](const Chunk& chunk) {
      existing.push_back({arena.core_->trace_index, chunk, budget_name(chunk)});
    });
  });
  TraceSession::ThreadBuffer* buffer = session.attach(0);
  for (const std::string& text : texts) {
    if (!buffer->events.has_room()) session.flush(*buffer);
    buffer->events.add_text(TraceEventKind::kText, 0, text);
  }
  for (const Existing& block : existing) {
    if (!buffer->events.has_room()) session.flush(*buffer);
    buffer->events.add_block(TraceEventKind::kExisting, 0, place_of(block.arena, block.chunk),
                             label_of(session, nullptr, block.chunk, block.budget));
  }
  session.detach(*buffer);
}

TraceRecorder::TraceRecorder(TraceOptions options) {
  begin(std::move(options));
  try {
    if (begin_hook) begin_hook();
  } catch (const std::exception& error) {
    log_message(LogLevel::warning, fmt::format("trace: names of what is there are missing: {}", error.what()));
  }
}

void TraceRecorder::begin(TraceOptions options) {
  Recording::prepare();
  Recording& recording = Recording::instance();
  const std::vector<std::string> budgets = BudgetNode::trace_records();
  const std::lock_guard lock(recording.mutex);
  if (recording.number != 0)
    throw FailedPrecondition(fmt::format("trace \"{}\": \"{}\" is being recorded; finish it first",
                                         options.path.string(), recording.session->options().path.string()));
  session_ = std::make_unique<TraceSession>(std::move(options));
  recording.session = session_.get();
  recording.start_ns = session_->start_ns();
  recording.number = ++recording.last_number;
  ArenaList::instance().for_each([&](Arena& arena) { TraceHooks::watch(*session_, arena); });
  TraceHooks::record_existing(*session_, budgets);
}

TraceRecorder::~TraceRecorder() {
  try {
    finish();
  } catch (const std::exception& error) {
    log_message(LogLevel::error, error.what());
  }
}

void TraceRecorder::finish() {
  Recording& recording = Recording::instance();
  const std::lock_guard lock(recording.mutex);
  if (recording.session != session_.get() || !session_) return;
  {
    const StopThreads stopped;  // A thread past this point checks the number again before it touches its buffer.
    recording.number = 0;
  }
  recording.session = nullptr;
  ArenaList::instance().for_each([](Arena& arena) { TraceHooks::unwatch(arena); });
  session_->flush_all();
  session_->complete();
}

void TraceRecorder::save(const std::filesystem::path& path) {
  const std::lock_guard lock(Recording::instance().mutex);
  if (session_->options().mode != TraceMode::kRing)
    throw FailedPrecondition(
        fmt::format("trace \"{}\": only a ring can be saved while it records", session_->options().path.string()));
  {
    const StopThreads stopped;
    session_->flush_all();
  }
  session_->save(path);
}

void TraceRecorder::flush() {
  Recording& recording = Recording::instance();
  const std::lock_guard lock(recording.mutex);
  if (session_->options().mode != TraceMode::kStream)
    throw FailedPrecondition(fmt::format("trace \"{}\": a ring has no file that grows; save() writes what it holds",
                                         session_->options().path.string()));
  if (recording.session != session_.get()) return;  // It is complete.
  {
    const StopThreads stopped;
    session_->flush_all();
  }
  session_->require_written();
}

std::filesystem::path internal::flush_recorded_stream() {
  Recording& recording = Recording::instance();
  const std::lock_guard lock(recording.mutex);
  if (recording.number == 0 || recording.session->options().mode != TraceMode::kStream) return {};
  {
    const StopThreads stopped;
    recording.session->flush_all();
  }
  return std::filesystem::absolute(recording.session->options().path);
}

TraceCounters TraceRecorder::counters() const {
  const std::lock_guard lock(Recording::instance().mutex);
  const StopThreads stopped;
  return session_->counters();
}

void trace_step(std::uint64_t number) noexcept {
  last_step.store(number, std::memory_order_relaxed);
  if (Recording::instance().number.load(std::memory_order_relaxed) == 0) return;
  record_event([&](TraceBuffer& buffer, std::int64_t time) { buffer.add_step(time, number); });
}

void trace_phase(std::string_view name) noexcept {
  if (Recording::instance().number.load(std::memory_order_relaxed) == 0) return;
  record_event([&](TraceBuffer& buffer, std::int64_t time) { buffer.add_text(TraceEventKind::kPhase, time, name); });
}

void trace_text(std::string_view text) noexcept {
  if (Recording::instance().number.load(std::memory_order_relaxed) == 0) return;
  record_event([&](TraceBuffer& buffer, std::int64_t time) { buffer.add_text(TraceEventKind::kText, time, text); });
}

std::optional<std::uint64_t> last_marked_step() noexcept {
  const std::uint64_t step = last_step.load(std::memory_order_relaxed);
  return step == kNoStep ? std::nullopt : std::optional(step);
}

bool trace_is_recording() noexcept { return Recording::instance().number.load(std::memory_order_relaxed) != 0; }

}  // namespace plimsoll
