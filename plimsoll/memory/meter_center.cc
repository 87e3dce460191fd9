#include "plimsoll/memory/meter_center.h"

#include <algorithm>

#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {

MeterCenter::MeterCenter(std::size_t limit)
    : limit_(static_cast<std::int64_t>(std::min<std::size_t>(limit, INT64_MAX / 2))),
      quota_(std::min<std::int64_t>(limit_ / 256, std::int64_t{64} << 20)) {}

std::mutex& MeterCenter::mutex() {
  static std::mutex* mutex = new std::mutex;  // Never destroyed: threads may end after main.
  return *mutex;
}

bool MeterCenter::draw(Meter& meter, std::int64_t bytes) {
  if (bytes > limit_) return false;
  const std::int64_t need = Meter::load(meter.used) + bytes - Meter::load(meter.allowance);
  if (need <= 0) return true;
  std::int64_t room = std::min(limit_, upper_mark_) - drawn_;
  if (room < need) {
    collect_idle(&meter);
    room = std::min(limit_, upper_mark_) - drawn_;
    if (room < need && upper_mark_ < limit_) {
      passed_mark_.store(true);
      room = std::min(limit_ - drawn_, need);  // Beyond the mark, only what is needed.
    }
    if (room < need) return false;
  }
  const std::int64_t drawn = std::min(need + quota_, room);
  drawn_ += drawn;
  meter.allowance.store(Meter::load(meter.allowance) + drawn, std::memory_order_relaxed);
  return true;
}

void MeterCenter::give_back(Meter& meter) {
  const std::int64_t idle = Meter::load(meter.allowance) - Meter::load(meter.used);
  const std::int64_t surplus = idle - quota_;
  if (surplus <= 0) return;
  note_drawn();
  meter.allowance.store(Meter::load(meter.allowance) - surplus, std::memory_order_relaxed);
  drawn_ -= surplus;
}

void MeterCenter::cancel(Meter& meter) {
  drawn_ -= Meter::load(meter.allowance) - Meter::load(meter.used);
  meter.allowance.store(Meter::load(meter.used), std::memory_order_relaxed);
}

// Takes back all unused allowance of the other threads.
void MeterCenter::collect_idle(const Meter* except) {
  if (meters_.size() < 2) return;
  note_drawn();
  const StopThreads stopped;
  for (Meter* meter : meters_) {
    if (meter == except) continue;
    const std::int64_t idle = Meter::load(meter->allowance) - Meter::load(meter->used);
    meter->allowance.store(Meter::load(meter->used), std::memory_order_relaxed);
    drawn_ -= idle;
  }
}

void MeterCenter::attach(Meter& meter) {
  meter.center = this;
  meter.keep = lower_mark_ > 0 ? -1 : 2 * quota_;
  rebase_peaks();
  meters_.push_back(&meter);
}

void MeterCenter::detach(Meter& meter) {
  rebase_peaks();
  note_drawn();
  const std::int64_t used = Meter::load(meter.used);
  drawn_ -= Meter::load(meter.allowance) - used;
  retired_ += used;
  meters_.erase(std::find(meters_.begin(), meters_.end(), &meter));
  meter.used = meter.peak = meter.allowance = 0;
}

// The sum of the threads' peaks is valid only while the set of threads stays the same: save it and start counting
// again.
void MeterCenter::rebase_peaks() {
  if (meters_.empty()) return;
  const StopThreads stopped;
  peak_floor_ = peak_locked();
  for (Meter* meter : meters_) meter->peak.store(Meter::load(meter->used), std::memory_order_relaxed);
}

std::int64_t MeterCenter::used_locked() const noexcept {
  std::int64_t total = retired_;
  for (const Meter* meter : meters_) total += Meter::load(meter->used);
  return std::clamp<std::int64_t>(
      total, 0, std::max<std::int64_t>(drawn_, 0));  // A block that changes threads meanwhile may be counted twice.
}

std::size_t MeterCenter::used() const {
  const std::lock_guard lock(mutex());
  return static_cast<std::size_t>(used_locked());
}

std::int64_t MeterCenter::peak_locked() const {
  std::int64_t sum = retired_;
  for (const Meter* meter : meters_) sum += Meter::load(meter->peak);
  return std::max(peak_floor_, std::min(sum, std::max(peak_drawn_, drawn_)));
}

std::size_t MeterCenter::peak() const {
  const std::lock_guard lock(mutex());
  return static_cast<std::size_t>(peak_locked());
}

void MeterCenter::reset_peak() {
  const std::lock_guard lock(mutex());
  const StopThreads stopped;
  peak_floor_ = retired_;
  for (Meter* meter : meters_) {
    peak_floor_ += Meter::load(meter->used);
    meter->peak.store(Meter::load(meter->used), std::memory_order_relaxed);
  }
  peak_drawn_ = drawn_;
}

void MeterCenter::set_marks(std::size_t lower, std::size_t upper) {
  lower_mark_ = static_cast<std::int64_t>(lower);
  upper_mark_ = static_cast<std::int64_t>(std::min<std::size_t>(upper, INT64_MAX));
  passed_mark_.store(false, std::memory_order_relaxed);
  note_drawn();
  const StopThreads stopped;
  for (Meter* meter : meters_) {
    meter->keep = lower_mark_ > 0 ? -1 : 2 * quota_;
    if (drawn_ < upper_mark_) continue;  // Otherwise allowances may reach beyond the mark: shorten them.
    drawn_ -= Meter::load(meter->allowance) - Meter::load(meter->used);
    meter->allowance.store(Meter::load(meter->used), std::memory_order_relaxed);
  }
}

}  // namespace plimsoll::internal
