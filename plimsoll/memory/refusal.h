// The one way to refuse a request that does not fit a limit: the trace notes it, then OutOfMemory is thrown.
//
//   OutOfMemoryDetails details{.what = "fit: ...", .requested = 4_MiB, .limit = 1_MiB};
//   throw_refusal(std::move(details), {.budget = "fit"});
//
// A report shows every refusal that came this way; one that is thrown directly is missing there. Take no lock of the
// memory layer with it: the recorder's comes first. Thread safety: plain functions.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/label.h"

namespace plimsoll::internal {

// Who refused what; "" where it is not known. A budget refuses when it is named, else the device.
struct RefusedBy {
  const char* budget = "";
  const char* device = "";
  const char* op = "";
  const char* scope = "";
};

// `who: cannot allocate ... for op "..."; used ... of ...; held by ...; tried ...; it takes a limit of at least ...`
std::string describe_refusal(const std::string& who, const BlockLabel& label, const OutOfMemoryDetails& details);

[[noreturn]] PLIMSOLL_API void throw_refusal(OutOfMemoryDetails details, const RefusedBy& by);

// Only the first half: for requests that are refused without an exception.
PLIMSOLL_API void trace_refusal(const OutOfMemoryDetails& details, const RefusedBy& by) noexcept;

}  // namespace plimsoll::internal
