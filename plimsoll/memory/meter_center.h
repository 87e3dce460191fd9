// MeterCenter: the count behind the meters of all threads; a budget or a device has one.
//
// draw() and give_back() are the slow path and take one lock for the whole process.
// used() is exact when no thread is between enter() and leave(); peak() is exact while one thread uses the center and
// with more at most 1/128 of the limit per thread too high.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/meter.h"

namespace plimsoll::internal {

class ThreadMemory;

class MeterCenter {
 public:
  explicit MeterCenter(std::size_t limit);
  MeterCenter(const MeterCenter&) = delete;
  MeterCenter& operator=(const MeterCenter&) = delete;
  virtual ~MeterCenter() = default;

  static std::mutex& mutex();  // Guards every center; take it before the calls that require it.

  // Requires the lock, and the caller outside its gate. Raises `meter`'s allowance so that `bytes` more fit, taking
  // back what other threads do not use. False when the limit does not allow it; then only idle quotas have changed.
  bool draw(Meter& meter, std::int64_t bytes);
  // Requires the lock, and the caller outside its gate.
  void give_back(Meter& meter);
  // The same for quota drawn in vain: returns all that is unused, as if it had not been drawn.
  void cancel(Meter& meter);

  // Requires the lock. Call when another thread starts or stops using the center.
  void attach(Meter& meter);
  void detach(Meter& meter);

  std::size_t used() const;
  std::size_t peak() const;
  void reset_peak();  // To what is used now.
  std::size_t limit() const noexcept { return static_cast<std::size_t>(limit_); }

  // Marks, for alerts. When draw() passes the upper one, passed_mark() becomes true. Below the lower one,
  // fell_below_mark() is true; while it is set, every give() checks. Both require the lock; 0 and SIZE_MAX mean none.
  void set_marks(std::size_t lower, std::size_t upper);
  bool passed_mark() const noexcept { return passed_mark_.load(std::memory_order_relaxed); }
  bool fell_below_mark() const noexcept { return lower_mark_ > 0 && used_locked() < lower_mark_; }
  std::size_t used_now() const noexcept { return static_cast<std::size_t>(used_locked()); }  // Requires the lock.

 private:
  void collect_idle(const Meter* except);
  void rebase_peaks();
  void note_drawn() noexcept { peak_drawn_ = std::max(peak_drawn_, drawn_); }  // Call before drawn_ falls.
  std::int64_t used_locked() const noexcept;
  std::int64_t peak_locked() const;

  const std::int64_t limit_;
  const std::int64_t quota_;
  std::int64_t upper_mark_ = INT64_MAX;
  std::int64_t lower_mark_ = 0;
  std::atomic<bool> passed_mark_{false};
  std::int64_t drawn_ = 0;       // Sum of the allowances plus retired_. Never more than limit_.
  std::int64_t peak_drawn_ = 0;  // Does not include the rise of drawn_ since it last fell.
  std::int64_t retired_ = 0;     // Used by threads that have ended.
  std::int64_t peak_floor_ = 0;  // Peak before the set of threads last changed.
  std::vector<Meter*> meters_;
};

}  // namespace plimsoll::internal
