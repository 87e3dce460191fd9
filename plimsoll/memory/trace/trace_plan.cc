#include "plimsoll/memory/trace/trace_plan.h"

#include <algorithm>
#include <utility>

#include "plimsoll/base/call_site.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/trace/trace_recording.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostLabelBytes = 128;

std::uint64_t rounded(std::uint64_t bytes) { return round_up(bytes, kGranularity); }

// As it is written to the file: docs/trace_format.md.
std::vector<std::byte> encoded(TraceSession& session, const PlacedValues& plan) {
  using namespace trace_format;
  std::vector<std::byte> bytes;
  std::byte item[kMostLabelBytes];
  const auto add = [&](const std::byte* end) { bytes.insert(bytes.end(), item, item + (end - item)); };
  add(put_number(put_number(item, plan.steps), plan.values.size()));
  for (const PlacedValue& value : plan.values) {
    std::byte* at = put_number(put_number(item, value.extent), value.first);
    at = put_number(at, value.end - value.first);
    at = put_number(put_number(at, rounded(value.bytes) / kGranularity), value.offset / kGranularity);
    add(put_label(at, {value.label, value.bytes, session.add_name(value.label.op), session.add_name(value.label.scope),
                       session.add_name(value.label.name), 0, session.add_name(site_text(value.label.site))}));
  }
  add(put_number(item, plan.phases.size()));
  std::uint32_t before = 0;
  for (const PlacedPhase& phase : plan.phases)
    add(put_number(put_number(item, phase.first - std::exchange(before, phase.first)), session.add_name(phase.name)));
  return bytes;
}

}  // namespace

TracePlanRun::TracePlanRun(KnownPlan& known, const PlacedValues& plan, std::span<const std::uint64_t> blocks) noexcept
    : known_(known),
      plan_(plan),
      blocks_(blocks),
      times_steps_(!known.short_steps),
      start_ns_(times_steps_ ? monotonic_ns() : 0),
      last_ns_(start_ns_) {}

void TracePlanRun::step_done() noexcept {
  const std::int64_t now = monotonic_ns();
  durations_[timed_++] = static_cast<std::uint32_t>(std::min<std::int64_t>(now - last_ns_, UINT32_MAX));
  last_ns_ = now;
  if (timed_ == durations_.size()) tell(timed_);
}

void TracePlanRun::tell(std::uint32_t steps) noexcept {
  for (std::uint32_t extent = 0; extent < blocks_.size(); ++extent) {
    if (blocks_[extent] == 0) continue;
    const auto add = [&](TraceBuffer& buffer, std::int64_t time) {
      if (known_.number != TraceSession::kNoPlan)
        buffer.add_plan_steps(time, blocks_[extent], known_.number, extent, steps, {durations_.data(), timed_});
      return true;
    };
    const auto try_add = [&](TraceBuffer& buffer, std::int64_t time) {
      return known_.recording == OwnTraceBuffer::current().number && add(buffer, time);
    };
    const auto add_new = [&](TraceSession& session, TraceBuffer& buffer, std::int64_t time) {
      if (const std::uint64_t now = Recording::instance().number; known_.recording != now) {
        known_.number = session.add_plan(encoded(session, plan_));
        known_.recording = now;
      }
      add(buffer, time);
    };
    if (times_steps_)
      record_event(try_add, add_new);
    else
      record_event<TraceTime::kSameAsBefore>(try_add, add_new);
  }
  told_ += steps;
  timed_ = 0;
}

void TracePlanRun::finish() noexcept {
  if (times_steps_) known_.short_steps = last_ns_ - start_ns_ < kTimedStepNs * plan_.steps;
  if (told_ < plan_.steps) tell(plan_.steps - told_);
}

}  // namespace plimsoll::internal
