#include "plimsoll/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace plimsoll {

// Destructors out of line: one type_info and one vtable per kind, exported, so that `catch` works across libraries.
Error::~Error() = default;
InvalidArgument::~InvalidArgument() = default;
FailedPrecondition::~FailedPrecondition() = default;
NotFound::~NotFound() = default;
Corruption::~Corruption() = default;
Unsupported::~Unsupported() = default;
Disposed::~Disposed() = default;
Leak::~Leak() = default;
OutOfMemory::~OutOfMemory() = default;

OutOfMemory::OutOfMemory(OutOfMemoryDetails details)
    : Error(details.what), details_(std::make_shared<const OutOfMemoryDetails>(std::move(details))) {}

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: bug in plimsoll: expected %s\n", file, line, condition);
  std::abort();
}

}  // namespace plimsoll
