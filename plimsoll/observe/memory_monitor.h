// MemoryMonitor: calls back at regular intervals with the memory of the process and the machine.
//
//   MemoryMonitor monitor({.every = std::chrono::seconds(1)}, [](const MemorySample& now) {
//     std::cerr << format_bytes(now.process.resident) << " of " << format_bytes(now.system.available) << " left\n";
//   });
//
// The callback runs on the monitor's own thread, one at a time; exceptions are logged. A callback that takes longer
// than the interval delays the next one. The destructor waits for a running callback, and none is called after it: a
// callback must not destroy its monitor. on_memory_alert() (alerts.h) is for thresholds of the arenas.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/process_memory.h"

namespace plimsoll {

struct MemorySample {
  std::chrono::steady_clock::time_point time;
  ProcessMemory process;
  SystemMemory system;
};

struct MemoryMonitorOptions {
  std::chrono::milliseconds every{1000};
  bool reads_system = true;           // Whether samples have the machine's memory too; most of a sample's cost.
  std::function<bool()> is_due = {};  // Asked at each interval before anything is read; false skips that one.
};

class PLIMSOLL_API MemoryMonitor {
 public:
  // Throws InvalidArgument for an interval below a millisecond and for an empty callback. The first call happens at
  // once.
  MemoryMonitor(const MemoryMonitorOptions& options, std::function<void(const MemorySample&)> callback);
  ~MemoryMonitor();
  MemoryMonitor(const MemoryMonitor&) = delete;
  MemoryMonitor& operator=(const MemoryMonitor&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
