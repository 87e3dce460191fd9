#include "plimsoll/observe/live/live_view.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string_view>
#include <utility>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/observe/live/live_file.h"
#include "plimsoll/observe/live/live_questions.h"
#include "plimsoll/observe/memory_monitor.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kRest = 1000;  // Counting blocks takes at most 1 / kRest of the time.
// Publishing takes at most 1 / kWork of the processor time that the process uses: a process that hardly runs changes
// little. After kMostSkipped intervals it happens anyway, so that readers see that the process is alive.
constexpr std::int64_t kWork = 300, kMostSkipped = 10;

std::string program_name() {
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  return name.empty() ? "process" : name;
}

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t process_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// While it lives, new threads block all signals: those are for the program's own threads.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

struct LiveView::State {
  explicit State(const LiveOptions& options) : process(getpid()) {
    set_text(counters.name, options.name.empty() ? program_name() : options.name);
    counters.process = static_cast<std::uint32_t>(process);
    counters.interval_ms = static_cast<std::uint32_t>(options.every.count());
    counters.started_unix_ns = unix_ns();
  }

  bool is_due() {
    const std::lock_guard lock(mutex);
    const std::int64_t every_ns = std::int64_t{counters.interval_ms} * 1'000'000;
    return process_cpu_ns() - worked_ns >= kWork * cost_ns ||
           monotonic_ns() - published_ns >= kMostSkipped * every_ns - every_ns / 2;
  }

  // The monitor's thread does nothing else, so all its time counts.
  void publish(const ProcessMemory& memory, bool is_monitor) {
    const std::lock_guard lock(mutex);
    const std::int64_t begin = thread_cpu_ns(), now = monotonic_ns();
    counters.resident = memory.resident;
    counters.peak_resident = memory.peak_resident;
    const bool count_blocks = now >= next_count_ns;
    gather_live_counters(counters, count_blocks);
    if (count_blocks) next_count_ns = now + kRest * (monotonic_ns() - now);
    ++counters.publications;
    file.publish(counters);
    const std::int64_t end = thread_cpu_ns();
    cost_ns = is_monitor ? end - std::exchange(monitor_cpu_ns, end) : end - begin;
    if (!is_monitor) other_cpu_ns += cost_ns;
    published_ns = now;
    worked_ns = process_cpu_ns();
    counters.publisher_cpu_ns = static_cast<std::uint64_t>(monitor_cpu_ns + other_cpu_ns);  // Published the next time.
  }

  const int process;
  std::mutex mutex;  // Guards what follows.
  LiveCounters counters;
  std::int64_t next_count_ns = 0, monitor_cpu_ns = 0, other_cpu_ns = 0;
  std::int64_t published_ns = 0, worked_ns = 0, cost_ns = 0;  // When last, the process's processor time then, its cost.
  LiveFile file;
  std::unique_ptr<LiveQuestions> questions;
  std::unique_ptr<MemoryMonitor> monitor;
};

namespace {

// The view of this process. The lock also protects it while the process forks.
struct Current {
  std::mutex mutex;
  LiveFile* file = nullptr;
  LiveQuestions* questions = nullptr;
  std::unique_ptr<LiveView> from_environment;

  static Current& instance() {
    static Current* const current = [] {
      pthread_atfork([] { Current::instance().mutex.lock(); }, [] { Current::instance().mutex.unlock(); },
                     [] { Current::instance().forked(); });
      return new Current;
    }();
    return *current;
  }

  void forked() noexcept {  // In the child.
    if (file) file->leave_to_parent();
    if (questions) questions->leave_to_parent();
    file = nullptr;
    questions = nullptr;
    static_cast<void>(from_environment.release());  // Its threads do not exist here.
    mutex.unlock();
  }
};

}  // namespace

LiveView::LiveView(const LiveOptions& options) {
  if (options.every.count() < 10)
    throw InvalidArgument(fmt::format("live: an interval of {} ms; give 10 or more", options.every.count()));
  Current& current = Current::instance();
  std::unique_ptr<LiveView> replaced;
  {
    const std::lock_guard lock(current.mutex);
    if (current.from_environment) replaced = std::move(current.from_environment);
  }
  replaced.reset();
  const std::lock_guard lock(current.mutex);
  if (current.file)
    throw FailedPrecondition(fmt::format("live: this process publishes in \"{}\" already; keep one LiveView",
                                         current.file->path().string()));
  state_ = std::make_unique<State>(options);
  state_->publish(process_memory(), false);
  const BlockSignals blocked;
  state_->questions = std::make_unique<LiveQuestions>(state_->file.folder(), state_->process);
  state_->monitor = std::make_unique<MemoryMonitor>(
      MemoryMonitorOptions{
          .every = options.every, .reads_system = false, .is_due = [state = state_.get()] { return state->is_due(); }},
      [state = state_.get()](const MemorySample& sample) { state->publish(sample.process, true); });
  current.file = &state_->file;
  current.questions = state_->questions.get();
}

LiveView::~LiveView() {
  if (!state_) return;
  if (getpid() != state_->process) {
    static_cast<void>(state_.release());
    return;
  }
  Current& current = Current::instance();
  {
    const std::lock_guard lock(current.mutex);
    current.file = nullptr;
    current.questions = nullptr;
  }
  state_->monitor.reset();
  state_->questions.reset();
}

std::filesystem::path LiveView::file() const { return state_->file.path(); }

void LiveView::publish() { state_->publish(process_memory(), false); }

void start_live_view_from_environment() noexcept try {
  const char* const asked = std::getenv("PLIMSOLL_LIVE");
  if (!asked || std::string_view(asked) != "1") return;
  Current& current = Current::instance();
  {
    const std::lock_guard lock(current.mutex);
    if (current.file) return;
  }
  auto view = std::make_unique<LiveView>(LiveOptions{});
  const std::lock_guard lock(current.mutex);
  if (!current.from_environment) {
    current.from_environment = std::move(view);
    std::atexit([] {  // The lock ends with the process; the names are removed now.
      Current& now = Current::instance();
      const std::lock_guard still(now.mutex);
      if (now.file) now.file->remove();
      if (now.questions) now.questions->remove();
    });
  }
} catch (const std::exception& error) {
  try {
    log_message(LogLevel::warning, fmt::format("PLIMSOLL_LIVE: {}", error.what()));
  } catch (...) {
  }
}

}  // namespace plimsoll
