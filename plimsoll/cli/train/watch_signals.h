// WatchSignals: while it lives, the first SIGINT, SIGTERM or SIGHUP is noted instead of ending the program, so that the
// caller can stop after a step and save. The second one of a kind ends it.
//
//   const WatchSignals watch;
//   if (WatchSignals::caught() != 0) model.stop_training();
//
// A signal that the program was started to ignore (nohup) stays ignored.
#pragma once

#include <csignal>

namespace plimsoll::internal {

class WatchSignals {
 public:
  WatchSignals();
  ~WatchSignals();
  WatchSignals(const WatchSignals&) = delete;
  WatchSignals& operator=(const WatchSignals&) = delete;

  static int caught() noexcept;  // 0: none since the last WatchSignals began.
  static const char* name_of(int signal) noexcept;

 private:
  static constexpr int kWatched[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[3] = {};
};

}  // namespace plimsoll::internal
