// WeightsFollow: while it lives, new weights on this thread are zeros: a file's values will replace them at once.
#pragma once

#include "plimsoll/model/initializer.h"

namespace plimsoll {

class WeightsFollow {
 public:
  explicit WeightsFollow(bool on) noexcept : before_(on_) { on_ = on_ || on; }
  ~WeightsFollow() { on_ = before_; }
  WeightsFollow(const WeightsFollow&) = delete;
  WeightsFollow& operator=(const WeightsFollow&) = delete;

  static bool is_on() noexcept { return on_; }
  static const Initializer& zeros() {
    static const Initializer kZeros("zeros");
    return kZeros;
  }

 private:
  const bool before_;
  inline static thread_local bool on_ = false;
};

}  // namespace plimsoll
