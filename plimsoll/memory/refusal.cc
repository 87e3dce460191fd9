#include "plimsoll/memory/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/trace/trace_recording.h"

namespace plimsoll::internal {

std::string describe_refusal(const std::string& who, const BlockLabel& label, const OutOfMemoryDetails& details) {
  std::string text =
      fmt::format("{}: cannot allocate {} for \"{}\"", who, format_bytes_exactly(details.requested), label.op);
  if (*label.scope) text += fmt::format(" in scope \"{}\"", label.scope);
  text += fmt::format("; used {} of {}", format_bytes(details.in_use), format_bytes_exactly(details.limit));
  for (std::size_t i = 0; i < std::min<std::size_t>(details.holders.size(), 3); ++i) {
    const MemoryHolder& holder = details.holders[i];
    text +=
        fmt::format("{} {} x \"{}\"{} {}", i ? "," : "; held by", holder.count, holder.op,
                    holder.scope.empty() ? "" : fmt::format(" in \"{}\"", holder.scope), format_bytes(holder.bytes));
  }
  text += "; tried to";
  for (std::size_t i = 0; i < details.tried.size(); ++i)
    text += fmt::format("{} {} ({})", i ? "," : "", details.tried[i].name, format_bytes(details.tried[i].bytes_freed));
  text += fmt::format("; it takes a limit of at least {}", format_bytes_exactly(details.smallest_sufficient_limit));
  constexpr std::size_t kSuspicious = 64_KiB;  // A limit this small may be meant in another unit.
  if (details.limit <= kSuspicious) text += fmt::format("; limits are in bytes: did you mean {}_MiB?", details.limit);
  return text;
}

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

}  // namespace plimsoll::internal
