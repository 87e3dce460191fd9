// Ctrl-C while the library computes: Python notes a signal, and does something about it only when it is asked.
#include <chrono>

#include "common.h"

namespace binding {

void check_signals() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point asked;  // Each thread on its own: only the main one is told of signals.
  const Clock::time_point now = Clock::now();
  if (now - asked < std::chrono::milliseconds(50)) return;
  asked = now;
  with_python([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return 0;
  });
}

}  // namespace binding
