// PLIMSOLL_API marks the names that the shared library exports. Everything else stays inside.
#pragma once

#if defined(PLIMSOLL_BUILDING)
#define PLIMSOLL_API __attribute__((visibility("default")))
#else
#define PLIMSOLL_API
#endif

// Everything that is not public is in plimsoll::internal: the headers that plimsoll/plimsoll.h does not reach
// (docs/design.md lists them by folder). The library's own code need not spell the namespace out.
namespace plimsoll {
namespace internal {}
using namespace internal;
}  // namespace plimsoll
