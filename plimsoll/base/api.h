// PLIMSOLL_API marks the names that the shared library exports. Everything else stays inside.
#pragma once

#if defined(PLIMSOLL_BUILDING)
#define PLIMSOLL_API __attribute__((visibility("default")))
#else
#define PLIMSOLL_API
#endif
