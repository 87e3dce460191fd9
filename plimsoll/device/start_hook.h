// What a layer above does when the runtime has started. Set once, as the program starts.
#pragma once

namespace plimsoll::internal {

void set_runtime_start_hook(void (*hook)() noexcept) noexcept;

}  // namespace plimsoll::internal
