#include "plimsoll/memory/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/internal/arena_core.h"

namespace plimsoll {

struct MemoryAlertHandle::Alert {
  double fraction;
  std::function<void(const MemoryAlert&)> callback;
  std::shared_ptr<BudgetNode> budget;           // nullptr: the alert is about devices.
  std::bitset<ThreadMemory::kMaxArenas> fired;  // By arena number; a budget's alert uses the first bit.
  std::recursive_mutex running;                 // Held while the callback runs.
  bool ended = false;                           // Guarded by `running`.

  // The number of bytes in use at which it fires.
  std::size_t threshold(std::size_t limit) const {
    return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(limit))));
  }
};

MemoryAlertHandle& MemoryAlertHandle::operator=(MemoryAlertHandle&& other) noexcept {
  MemoryAlertHandle ended;
  std::swap(ended.alert_, alert_);
  std::swap(alert_, other.alert_);
  return *this;
}

MemoryAlertHandle::~MemoryAlertHandle() {
  if (alert_) AlertList::instance().remove(*alert_);
}

MemoryAlertHandle on_memory_alert(double fraction, std::function<void(const MemoryAlert&)> callback) {
  return AlertList::instance().add("on_memory_alert", nullptr, fraction, std::move(callback));
}

AlertList& AlertList::instance() {
  static auto* list = new AlertList;
  return *list;
}

MemoryAlertHandle AlertList::add(const char* where, std::shared_ptr<BudgetNode> budget, double fraction,
                                 std::function<void(const MemoryAlert&)> callback) {
  if (!(fraction > 0 && fraction <= 1))
    throw InvalidArgument(fmt::format("{}: the fraction is {}; give one above 0 and up to 1", where, fraction));
  if (!callback) throw InvalidArgument(fmt::format("{}: the callback is empty", where));
  MemoryAlertHandle handle;
  handle.alert_ = std::make_shared<MemoryAlertHandle::Alert>();
  handle.alert_->fraction = fraction;
  handle.alert_->callback = std::move(callback);
  handle.alert_->budget = std::move(budget);
  {
    const std::lock_guard lock(mutex_);
    alerts_.push_back(handle.alert_);
  }
  if (handle.alert_->budget) {
    check_budgets();
    return handle;
  }
  std::vector<Due> due;
  ArenaList::instance().for_each([&](Arena& arena) {  // None is destroyed meanwhile.
    const std::lock_guard lock(mutex_);
    update(watched(arena), due);
  });
  fire(due);
  return handle;
}

void AlertList::remove(MemoryAlertHandle::Alert& alert) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(alerts_, [&](const auto& other) { return other.get() == &alert; });
    const std::lock_guard centers(MeterCenter::mutex());
    if (alert.budget) set_marks(watched(*alert.budget));
  }
  if (!alert.budget)
    ArenaList::instance().for_each([&](Arena& arena) {
      const std::lock_guard lock(mutex_);
      const std::lock_guard centers(MeterCenter::mutex());
      set_marks(watched(arena));
    });
  const std::lock_guard lock(alert.running);
  alert.ended = true;
}

AlertList::Watched AlertList::watched(Arena& arena) {
  return {arena.core_->center, arena.core_->options.limit, arena.core_->number(), nullptr, arena.name()};
}

AlertList::Watched AlertList::watched(BudgetNode& budget) {
  return {budget, budget.limit(), 0, &budget, budget.name()};
}

// Calls f(alert, threshold in bytes, whether it has fired) for every alert about `what`.
template <class F>
void AlertList::for_each_alert(const Watched& what, F&& f) {
  for (const auto& alert : alerts_)
    if (alert->budget.get() == what.budget) f(alert, alert->threshold(what.limit), alert->fired[what.place]);
}

void AlertList::update(const Watched& what, std::vector<Due>& due) {
  const std::lock_guard centers(MeterCenter::mutex());  // So that nobody passes the new marks unseen.
  const std::size_t used = what.center.used_now();
  for_each_alert(what, [&](const auto& alert, std::size_t threshold, auto fired) {
    const bool above = used >= threshold;
    if (above && !fired)
      due.push_back({alert,
                     {.device = what.budget ? "" : what.name,
                      .bytes_in_use = used,
                      .bytes_limit = what.limit,
                      .fraction = alert->fraction,
                      .budget = what.budget ? what.name : ""}});
    alert->fired[what.place] = above;
  });
  set_marks(what);
}

// Sets the next thresholds below and above the current use, according to which alerts have fired.
void AlertList::set_marks(const Watched& what) {
  std::size_t lower = 0, upper = SIZE_MAX;
  for_each_alert(what, [&](const auto&, std::size_t threshold, bool fired) {
    if (fired)
      lower = std::max(lower, threshold);
    else
      upper = std::min(upper, threshold - 1);  // A draw up to there fires nothing.
  });
  what.center.set_marks(lower, upper);
}

std::vector<std::shared_ptr<BudgetNode>> AlertList::budgets() const {
  std::vector<std::shared_ptr<BudgetNode>> nodes;
  for (const auto& alert : alerts_)
    if (alert->budget) nodes.push_back(alert->budget);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void AlertList::fire(const std::vector<Due>& due) {
  for (const Due& one : due) {
    const auto& alert = one.alert;
    const MemoryAlert& what = one.what;
    const std::lock_guard lock(alert->running);
    if (alert->ended) continue;
    const auto complain = [&what = what](const char* why) {  // The allocation succeeded: it must not look failed.
      log_message(LogLevel::warning,
                  fmt::format("memory alert at {} of {}\"{}\": the callback threw{}{}", what.fraction,
                              what.budget.empty() ? "" : "budget ", what.budget.empty() ? what.device : what.budget,
                              *why ? ": " : "", why));
    };
    try {
      alert->callback(what);
    } catch (const std::exception& error) {
      complain(error.what());
    } catch (...) {
      complain("");
    }
  }
}

void AlertList::check(Arena& arena) {
  std::vector<Due> due;
  {
    const std::lock_guard lock(mutex_);
    update(watched(arena), due);
  }
  fire(due);
}

void AlertList::check_budgets() {
  std::vector<Due> due;
  std::vector<std::shared_ptr<BudgetNode>> nodes;  // Released without the lock held.
  {
    const std::lock_guard lock(mutex_);
    nodes = budgets();
    for (const auto& node : nodes) update(watched(*node), due);
  }
  fire(due);
}

}  // namespace plimsoll
