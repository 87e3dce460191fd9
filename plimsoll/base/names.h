// Interned names: equal text becomes one pointer that stays valid until the process ends.
//
//   const char* op = intern("conv2d");          // intern("conv2d") == op, from any thread
//   if (record.op == op) ...                    // Comparing names is comparing pointers.
//
// Meant for names of ops, scopes, tags and devices: few and repeated. They are never freed, so do not intern
// text that differs for every tensor.
// Thread safety: any thread. Cost: about 20 ns when this thread used the name recently, else a hash lookup under a
// shared lock; the first time, one allocation.
#pragma once

#include <cstddef>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// The one pointer for this text, terminated by a zero byte. A name ends at its first zero byte, if it has one.
// intern("") is a pointer to "". Throws std::bad_alloc only.
PLIMSOLL_API const char* intern(std::string_view name);

// The number of names and the bytes they take, for the report of the library's own overhead.
struct InternedNames {
  std::size_t count = 0;
  std::size_t bytes = 0;
};
PLIMSOLL_API InternedNames interned_names() noexcept;

}  // namespace plimsoll::internal
