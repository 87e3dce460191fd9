// Alerts: call me when a device's memory passes a share of its limit.
//
//   auto handle = on_memory_alert(0.8, [](const MemoryAlert& a) { log(a.device, a.fraction); });
//
// Fires once on the way up, on each device, and again only after use has fallen below in between. The callback runs on
// the allocating thread, after the allocation, without any lock held: it may allocate and free. What it throws goes to
// the log. The handle ends it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

class Arena;

struct MemoryAlert {
  std::string device;
  std::size_t bytes_in_use = 0;
  std::size_t bytes_limit = 0;
  double fraction = 0;  // The one that was asked for.
};

class PLIMSOLL_API MemoryAlertHandle {
 public:
  MemoryAlertHandle() = default;
  MemoryAlertHandle(MemoryAlertHandle&& other) noexcept = default;
  MemoryAlertHandle& operator=(MemoryAlertHandle&& other) noexcept;
  ~MemoryAlertHandle();  // No callback starts afterwards; waits for one that runs on another thread.

 private:
  friend class AlertList;
  struct Alert;
  std::shared_ptr<Alert> alert_;
};

// Requires 0 < fraction <= 1 and a callback (InvalidArgument).
[[nodiscard]] PLIMSOLL_API MemoryAlertHandle on_memory_alert(double fraction,
                                                             std::function<void(const MemoryAlert&)> callback);

// All alerts; for the arenas.
class AlertList {
 public:
  static AlertList& instance();
  MemoryAlertHandle add(double fraction, std::function<void(const MemoryAlert&)> callback);
  void remove(MemoryAlertHandle::Alert& alert);

  // Fires what has been passed, re-arms what use has fallen below, sets the arena's next marks. Without locks held.
  void check(Arena& arena);

 private:
  friend class ArenaList;  // Holds the list still while a process forks.
  struct Due {
    std::shared_ptr<MemoryAlertHandle::Alert> alert;
    MemoryAlert what;
  };
  void update(Arena& arena, std::vector<Due>& due);
  static void fire(const std::vector<Due>& due);
  std::mutex mutex_;
  std::vector<std::shared_ptr<MemoryAlertHandle::Alert>> alerts_;
};

}  // namespace plimsoll
