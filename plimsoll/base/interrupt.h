// Interrupts: a program that embeds the library can end long calls between two batches or two rounds of a loop.
//
//   set_interrupt_check([] { if (was_asked_to_stop) throw Stopped(); });
//   model.predict(x);   // Calls it before every batch. What it throws ends the call, which then holds nothing.
//
// predict, evaluate and the validation of fit call it before every batch, and while_loop in a graph before every round,
// on the thread that computes. The training steps of fit do not call it: use a callback there. A single operation
// always runs to its end. Thread safety: any thread. Cost: one load when no check is set.
#pragma once

#include <atomic>

#include "plimsoll/base/api.h"

namespace plimsoll {

// May throw; must be quick, since it is called often.
using InterruptCheck = void (*)();

namespace internal {
PLIMSOLL_API extern std::atomic<InterruptCheck> interrupt_check;
}

// Sets the check for the whole process; nullptr, the initial state, means none. Returns the previous one.
PLIMSOLL_API InterruptCheck set_interrupt_check(InterruptCheck check) noexcept;

inline void check_interrupt() {
  if (const InterruptCheck check = internal::interrupt_check.load(std::memory_order_relaxed)) [[unlikely]]
    check();
}

}  // namespace plimsoll
