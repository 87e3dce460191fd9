#include "plimsoll/memory/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"

namespace plimsoll {

struct MemoryAlertHandle::Alert {
  double fraction;
  std::function<void(const MemoryAlert&)> callback;
  std::bitset<ThreadMemory::kMaxArenas> fired;  // By arena number.
  std::recursive_mutex running;                 // Held while the callback runs.
  bool ended = false;                           // Guarded by `running`.

  // At this many bytes in use it fires.
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
  if (!(fraction > 0 && fraction <= 1))
    throw InvalidArgument(fmt::format("on_memory_alert: the fraction is {}; give one above 0 and up to 1", fraction));
  if (!callback) throw InvalidArgument("on_memory_alert: the callback is empty");
  return AlertList::instance().add(fraction, std::move(callback));
}

AlertList& AlertList::instance() {
  static auto* list = new AlertList;
  return *list;
}

MemoryAlertHandle AlertList::add(double fraction, std::function<void(const MemoryAlert&)> callback) {
  MemoryAlertHandle handle;
  handle.alert_ = std::make_shared<MemoryAlertHandle::Alert>();
  handle.alert_->fraction = fraction;
  handle.alert_->callback = std::move(callback);
  {
    const std::lock_guard lock(mutex_);
    alerts_.push_back(handle.alert_);
  }
  std::vector<Due> due;
  ArenaList::instance().for_each([&](Arena& arena) { update(arena, due); });  // None is destroyed meanwhile.
  fire(due);
  return handle;
}

void AlertList::remove(MemoryAlertHandle::Alert& alert) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(alerts_, [&](const auto& other) { return other.get() == &alert; });
  }
  const std::lock_guard lock(alert.running);
  alert.ended = true;
}

void AlertList::update(Arena& arena, std::vector<Due>& due) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard centers(MeterCenter::mutex());
  const std::size_t used = arena.center_.used_now();
  std::size_t lower = 0, upper = SIZE_MAX;
  for (const auto& alert : alerts_) {
    const std::size_t threshold = alert->threshold(arena.options_.limit);
    const bool above = used >= threshold;
    if (above && !alert->fired[arena.number_])
      due.push_back({alert, {arena.name(), used, arena.options_.limit, alert->fraction}});
    alert->fired[arena.number_] = above;
    if (above)
      lower = std::max(lower, threshold);
    else
      upper = std::min(upper, threshold - 1);  // A draw up to there is silent.
  }
  arena.center_.set_marks(lower, upper);
}

void AlertList::fire(const std::vector<Due>& due) {
  for (const auto& [alert, what] : due) {
    const std::lock_guard lock(alert->running);
    if (alert->ended) continue;
    try {
      alert->callback(what);
    } catch (const std::exception& error) {  // The allocation has happened: it must not seem to have failed.
      log_message(LogLevel::warning, fmt::format("memory alert at {} of \"{}\": the callback threw: {}", what.fraction,
                                                 what.device, error.what()));
    } catch (...) {
      log_message(LogLevel::warning,
                  fmt::format("memory alert at {} of \"{}\": the callback threw", what.fraction, what.device));
    }
  }
}

void AlertList::check(Arena& arena) {
  std::vector<Due> due;
  update(arena, due);
  fire(due);
}

}  // namespace plimsoll
