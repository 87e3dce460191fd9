#include "plimsoll/base/interrupt.h"

namespace plimsoll {

namespace internal {
constinit std::atomic<InterruptCheck> interrupt_check{nullptr};
}

InterruptCheck set_interrupt_check(InterruptCheck check) noexcept { return internal::interrupt_check.exchange(check); }

}  // namespace plimsoll
