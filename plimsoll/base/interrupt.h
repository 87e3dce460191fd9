// Interrupts: a program that embeds the library can end its long calls, between two batches or two rounds of a loop.
//
//   set_interrupt_check([] { if (was_asked_to_stop) throw Stopped(); });
//   model.predict(x);   // Calls it before every batch. What it throws ends the call, which then holds nothing.
//
// Called by predict, evaluate and the validation of fit before every batch, and by while_loop in a graph before every
// round, on the thread that computes. A fit's steps are not its business: they have callbacks. A single operation runs
// to its end. Thread safety: any thread. Cost: one load where no check is set.
#pragma once

#include <atomic>

#include "plimsoll/base/api.h"

namespace plimsoll {

// May throw; must be quick, since it is called often.
using InterruptCheck = void (*)();

namespace internal {
PLIMSOLL_API extern std::atomic<InterruptCheck> interrupt_check;
}

// For the whole process; nullptr: none, as at the beginning. Returns the one before.
PLIMSOLL_API InterruptCheck set_interrupt_check(InterruptCheck check) noexcept;

inline void check_interrupt() {
  if (const InterruptCheck check = internal::interrupt_check.load(std::memory_order_relaxed)) [[unlikely]]
    check();
}

}  // namespace plimsoll
