#include "plimsoll/memory/trace/trace_buffer.h"

#include <algorithm>

#include "plimsoll/memory/chunk.h"

namespace plimsoll::internal {

using namespace trace_format;

std::byte* TraceBuffer::begin_event(TraceEventKind kind, std::int64_t time_ns) noexcept {
  if (events_ == 0) base_time_ = last_time_ = std::max(time_ns, last_time_);
  ++events_;
  std::byte* at = bytes_.data() + used_;
  *at++ = static_cast<std::byte>(kind);
  time_ns = std::max(time_ns, last_time_);
  at = put_number(at, static_cast<std::uint64_t>(time_ns - last_time_));
  last_time_ = time_ns;
  return at;
}

void TraceBuffer::end_event(std::byte* at) noexcept { used_ = static_cast<std::size_t>(at - bytes_.data()); }

std::byte* TraceBuffer::put_block(std::byte* at, std::uint64_t block) noexcept {
  at = put_number(at, zigzag(static_cast<std::int64_t>(block - last_block_)));
  last_block_ = block;
  return at;
}

std::byte* TraceBuffer::put_place(std::byte* at, const TracePlace& place) noexcept {
  at = put_number(at, place.arena);
  at = put_block(at, place.block);
  at = put_number(at, place.size / kGranularity);
  return put_number(at, place.offset / kGranularity);
}

void TraceBuffer::add_place(TraceEventKind kind, std::int64_t time_ns, const TracePlace& place) noexcept {
  end_event(put_place(begin_event(kind, time_ns), place));
}

std::byte* put_label(std::byte* at, const TraceLabel& traced) noexcept {
  const BlockLabel& label = traced.label;
  *at++ = static_cast<std::byte>((label.has_shape ? kHasShape : 0) | (traced.site ? kHasSite : 0) |
                                 (traced.budget ? kHasBudget : 0));
  at = put_number(at, traced.requested);
  at = put_number(at, traced.op);
  at = put_number(at, traced.scope);
  at = put_number(at, traced.name);
  *at++ = static_cast<std::byte>(label.category);
  at = put_number(at, label.step);
  if (traced.site) at = put_number(at, traced.site);
  if (traced.budget) at = put_number(at, traced.budget);
  if (label.has_shape) {
    *at++ = static_cast<std::byte>(label.dtype);
    *at++ = static_cast<std::byte>(label.rank);
    for (std::size_t i = 0; i < std::min<std::size_t>(label.rank, BlockLabel::kSizes); ++i)
      at = put_number(at, label.sizes[i]);
  }
  return at;
}

void TraceBuffer::add_block(TraceEventKind kind, std::int64_t time_ns, const TracePlace& place,
                            const TraceLabel& label) noexcept {
  end_event(put_label(put_place(begin_event(kind, time_ns), place), label));
}

void TraceBuffer::add_plan_steps(std::int64_t time_ns, std::uint64_t block, std::uint32_t plan, std::uint32_t extent,
                                 std::uint32_t steps, std::span<const std::uint32_t> durations) noexcept {
  std::byte* at = put_block(begin_event(TraceEventKind::kPlanSteps, time_ns), block);
  at = put_number(put_number(at, plan), extent);
  at = put_number(put_number(at, steps), durations.size());
  for (const std::uint32_t duration : durations) at = put_number(at, duration);
  end_event(at);
}

void TraceBuffer::add_committed(std::int64_t time_ns, std::uint32_t arena, std::uint64_t bytes) noexcept {
  end_event(put_number(put_number(begin_event(TraceEventKind::kCommitted, time_ns), arena), bytes));
}

void TraceBuffer::add_refused(std::int64_t time_ns, const TraceRefusal& refusal) noexcept {
  std::byte* at = begin_event(TraceEventKind::kRefused, time_ns);
  for (const std::uint64_t bytes : {refusal.requested, refusal.limit, refusal.in_use, refusal.sufficient})
    at = put_number(at, bytes);
  for (const std::uint32_t name : {refusal.op, refusal.scope, refusal.budget, refusal.device})
    at = put_number(at, name);
  end_event(put_text(at, refusal.text));
}

void TraceBuffer::add_arena_ended(std::int64_t time_ns, std::uint32_t arena) noexcept {
  end_event(put_number(begin_event(TraceEventKind::kArenaEnded, time_ns), arena));
}

void TraceBuffer::add_step(std::int64_t time_ns, std::uint64_t number) noexcept {
  end_event(put_number(begin_event(TraceEventKind::kStep, time_ns), number));
}

void TraceBuffer::add_text(TraceEventKind kind, std::int64_t time_ns, std::string_view text) noexcept {
  end_event(put_text(begin_event(kind, time_ns), text));
}

std::byte* TraceBuffer::put_text(std::byte* at, std::string_view text) noexcept {
  text = text.substr(0, kMaxText);
  at = put_number(at, text.size());
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

std::span<const std::byte> TraceBuffer::seal(std::uint32_t thread, std::uint32_t system_thread) noexcept {
  BlockHeader header;
  header.payload_bytes = static_cast<std::uint32_t>(used_ - kBlockHeaderBytes);
  header.thread = thread;
  header.system_thread = system_thread;
  header.items = events_;
  header.base_time_ns = base_time_;
  put_block_header(bytes_.data(), header, bytes_.data() + kBlockHeaderBytes);
  return {bytes_.data(), used_};
}

void TraceBuffer::clear() noexcept {
  used_ = kBlockHeaderBytes;
  events_ = 0;
  last_block_ = 0;
}

}  // namespace plimsoll::internal
