// kSanitized: whether tests run under the address or the thread sanitizer, which use resident memory and address space
// of their own.
#pragma once

namespace plimsoll {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace plimsoll
