// Alerts: calls back when the memory in use on a device, or in a budget, passes a share of its limit.
//
//   auto handle = on_memory_alert(0.8, [](const MemoryAlert& a) { log(a.device, a.fraction); });
//   auto mine = budget.on_alert(0.8, [](const MemoryAlert& a) { log(a.budget, a.bytes_in_use); });
//
// An alert fires once on the way up, on each device, and again only after use has fallen below the threshold in
// between. The callback runs on the allocating thread, after the allocation, with no lock held: it may allocate and
// free. Exceptions it throws are logged. Destroying the handle ends the alert. A budget's alert counts the bytes
// charged to the budget and to those below it, and keeps the budget alive.
// Precision: with any number of threads, it fires in the allocation that takes the use to the threshold, because close
// to the threshold threads draw no more quota than they need. If use falls and rises again between two allocations,
// that may go unnoticed.
// Cost: none for allocations while there is no alert; above the threshold every deallocation takes a lock.
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
namespace internal {
class ArenaList;
class BudgetNode;
class MeterCenter;
}  // namespace internal

struct MemoryAlert {
  std::string device;  // Empty for a budget's alert.
  std::size_t bytes_in_use = 0;
  std::size_t bytes_limit = 0;
  double fraction = 0;  // The fraction that was asked for.
  std::string budget;   // The budget's name; empty for a device's alert.
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

// All alerts of the process; used by arenas and budgets.
class AlertList {
 public:
  static AlertList& instance();

  // Adds an alert for `budget`, or for all devices when it is nullptr. Throws InvalidArgument that begins with `where`.
  MemoryAlertHandle add(const char* where, std::shared_ptr<BudgetNode> budget, double fraction,
                        std::function<void(const MemoryAlert&)> callback);
  void remove(MemoryAlertHandle::Alert& alert);

  // Fires the alerts whose threshold was passed, re-arms those that use has fallen below, and sets the next marks.
  // Call it without a lock held.
  void check(Arena& arena);
  void check_budgets();  // Checks all budgets that have alerts.

 private:
  friend class internal::ArenaList;  // Locks the list while a process forks.
  struct Due {
    std::shared_ptr<MemoryAlertHandle::Alert> alert;
    MemoryAlert what;
  };
  // The device or budget that alerts compare with.
  struct Watched {
    MeterCenter& center;
    std::size_t limit;
    std::size_t place;         // Its index in Alert::fired.
    const BudgetNode* budget;  // nullptr for a device.
    std::string name;
  };
  static Watched watched(Arena& arena);
  static Watched watched(BudgetNode& budget);
  template <class F>
  void for_each_alert(const Watched& what, F&& f);
  void update(const Watched& what, std::vector<Due>& due);  // Requires the lock.
  void set_marks(const Watched& what);                      // Requires the lock, and the lock of the centers.
  std::vector<std::shared_ptr<BudgetNode>> budgets() const;
  static void fire(const std::vector<Due>& due);
  std::mutex mutex_;
  std::vector<std::shared_ptr<MemoryAlertHandle::Alert>> alerts_;
};

}  // namespace plimsoll
