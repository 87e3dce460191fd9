// PLIMSOLL_API marks the names that the shared library exports. Everything else stays inside.
#pragma once

#if defined(PLIMSOLL_BUILDING)
#define PLIMSOLL_API __attribute__((visibility("default")))
#else
#define PLIMSOLL_API
#endif

// What is not public is in plimsoll::internal: headers that plimsoll/plimsoll.h does not reach, folder by folder
// (docs/design.md says which). The library's own code need not spell it.
namespace plimsoll {
namespace internal {}
using namespace internal;
}  // namespace plimsoll
