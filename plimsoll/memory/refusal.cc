#include "plimsoll/memory/refusal.h"

#include <utility>

#include "plimsoll/memory/trace/trace_recording.h"

namespace plimsoll {

void trace_refusal(const OutOfMemoryDetails& details, const RefusedBy& by) noexcept {
  if (!trace_is_recording()) return;
  record_with_lock([&](TraceSession& session, TraceBuffer& buffer, std::int64_t time) {
    buffer.add_refused(time, {.requested = details.requested,
                              .limit = details.limit,
                              .in_use = details.in_use,
                              .sufficient = details.smallest_sufficient_limit,
                              .op = session.add_name(by.op),
                              .scope = session.add_name(by.scope),
                              .budget = session.add_name(by.budget),
                              .device = session.add_name(by.device),
                              .text = details.what});
  });
}

void throw_refusal(OutOfMemoryDetails details, const RefusedBy& by) {
  trace_refusal(details, by);
  throw OutOfMemory(std::move(details));
}

}  // namespace plimsoll
