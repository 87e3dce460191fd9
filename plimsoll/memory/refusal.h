// The one way to refuse a request that does not fit a limit: it is noted in the trace, then OutOfMemory is thrown.
//
//   OutOfMemoryDetails details{.what = "fit: ...", .requested = 4_MiB, .limit = 1_MiB};
//   throw_refusal(std::move(details), {.budget = "fit"});
//
// A report shows every refusal made this way; one that is thrown directly is missing from it. Do not call it with a
// lock of the memory layer held: the recorder's lock comes first. Thread safety: plain functions.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/label.h"

namespace plimsoll::internal {

// Who refused what; "" where unknown. If a budget is named it refused, otherwise the device did.
struct RefusedBy {
  const char* budget = "";
  const char* device = "";
  const char* op = "";
  const char* scope = "";
};

// `who: cannot allocate ... for op "..."; used ... of ...; held by ...; tried ...; it takes a limit of at least ...`
std::string describe_refusal(const std::string& who, const BlockLabel& label, const OutOfMemoryDetails& details);

[[noreturn]] PLIMSOLL_API void throw_refusal(OutOfMemoryDetails details, const RefusedBy& by);

// Only notes it in the trace: for requests that are refused without an exception.
PLIMSOLL_API void trace_refusal(const OutOfMemoryDetails& details, const RefusedBy& by) noexcept;

}  // namespace plimsoll::internal
