// LazyZeroWeights: while it lives, new weights on this thread are zeros that take no memory until they are used: a
// file's values will replace them, or only their shapes are needed.
#pragma once

namespace plimsoll::internal {

class LazyZeroWeights {
 public:
  explicit LazyZeroWeights(bool on) noexcept : before_(on_) { on_ = on_ || on; }
  ~LazyZeroWeights() { on_ = before_; }
  LazyZeroWeights(const LazyZeroWeights&) = delete;
  LazyZeroWeights& operator=(const LazyZeroWeights&) = delete;

  static bool is_on() noexcept { return on_; }

 private:
  const bool before_;
  inline static thread_local bool on_ = false;
};

}  // namespace plimsoll::internal
