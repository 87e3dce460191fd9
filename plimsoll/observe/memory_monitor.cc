#include "plimsoll/observe/memory_monitor.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"

namespace plimsoll {

struct MemoryMonitor::State {
  std::chrono::milliseconds every;
  bool reads_system = true;
  std::function<bool()> is_due;
  std::function<void(const MemorySample&)> callback;
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;  // Guarded by the mutex.
  std::thread thread;

  void run() {
    auto next = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex);
    while (!ends) {
      lock.unlock();
      call();
      lock.lock();
      next = std::max(next + every, std::chrono::steady_clock::now());
      changed.wait_until(lock, next, [this] { return ends; });
    }
  }

  void call() noexcept {
    try {
      if (is_due && !is_due()) return;
      callback({std::chrono::steady_clock::now(), process_memory(), reads_system ? system_memory() : SystemMemory{}});
    } catch (const std::exception& error) {
      log_message(LogLevel::error, fmt::format("memory monitor: its callback threw: {}", error.what()));
    } catch (...) {
      log_message(LogLevel::error, "memory monitor: its callback threw something that is not an exception");
    }
  }
};

MemoryMonitor::MemoryMonitor(const MemoryMonitorOptions& options, std::function<void(const MemorySample&)> callback)
    : state_(std::make_unique<State>()) {
  if (options.every.count() < 1)
    throw InvalidArgument(fmt::format("memory monitor: an interval of {} ms; give 1 or more", options.every.count()));
  if (!callback) throw InvalidArgument("memory monitor: the callback is empty; give a function");
  state_->every = options.every;
  state_->reads_system = options.reads_system;
  state_->is_due = options.is_due;
  state_->callback = std::move(callback);
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

MemoryMonitor::~MemoryMonitor() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

}  // namespace plimsoll
