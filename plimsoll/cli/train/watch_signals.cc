#include "plimsoll/cli/train/watch_signals.h"

#include <cstddef>
#include <iterator>

namespace plimsoll::internal {
namespace {

volatile std::sig_atomic_t caught_signal = 0;

}  // namespace

WatchSignals::WatchSignals() {
  caught_signal = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { caught_signal = signal; };
  action.sa_flags = SA_RESETHAND;
  for (std::size_t i = 0; i < std::size(kWatched); ++i) {
    ::sigaction(kWatched[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kWatched[i], &action, nullptr);
  }
}

WatchSignals::~WatchSignals() {
  for (std::size_t i = 0; i < std::size(kWatched); ++i) ::sigaction(kWatched[i], &before_[i], nullptr);
}

int WatchSignals::caught() noexcept { return caught_signal; }

const char* WatchSignals::name_of(int signal) noexcept {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

}  // namespace plimsoll::internal
