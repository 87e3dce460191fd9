// TraceBuffer: one thread's events on their way to a trace file, and the numbers of recently used names.
//
// Filled by its thread between enter() and leave(), or read by a thread that has stopped it (thread_memory.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_format.h"

namespace plimsoll::internal {

struct TracePlace {
  std::uint32_t arena = 0;
  std::uint64_t block = 0, size = 0, offset = 0;
};

// A block's label with its names as numbers.
struct TraceLabel {
  BlockLabel label;
  std::uint64_t requested = 0;
  std::uint32_t op = 0, scope = 0, name = 0, budget = 0, site = 0;
};

std::byte* put_label(std::byte* at, const TraceLabel& label) noexcept;

// A request that did not fit; names as numbers.
struct TraceRefusal {
  std::uint64_t requested = 0, limit = 0, in_use = 0, sufficient = 0;
  std::uint32_t op = 0, scope = 0, budget = 0, device = 0;
  std::string_view text;
};

class TraceBuffer {
 public:
  static constexpr std::size_t kBytes = 64 << 10;
  static constexpr std::size_t kMostPerEvent = 256 + trace_format::kMaxText;

  bool has_room() const noexcept { return kBytes - used_ >= kMostPerEvent; }
  bool empty() const noexcept { return events_ == 0; }
  std::uint32_t events() const noexcept { return events_; }

  // Each requires has_room(). A time before that of the last event is replaced by that time.
  void add_place(TraceEventKind kind, std::int64_t time_ns, const TracePlace& place) noexcept;
  void add_block(TraceEventKind kind, std::int64_t time_ns, const TracePlace& place, const TraceLabel& label) noexcept;
  void add_committed(std::int64_t time_ns, std::uint32_t arena, std::uint64_t bytes) noexcept;
  void add_refused(std::int64_t time_ns, const TraceRefusal& refusal) noexcept;
  void add_arena_ended(std::int64_t time_ns, std::uint32_t arena) noexcept;
  void add_step(std::int64_t time_ns, std::uint64_t number) noexcept;
  void add_text(TraceEventKind kind, std::int64_t time_ns, std::string_view text) noexcept;
  // At most 200 durations: one for each step, or none.
  void add_plan_steps(std::int64_t time_ns, std::uint64_t block, std::uint32_t plan, std::uint32_t extent,
                      std::uint32_t steps, std::span<const std::uint32_t> durations) noexcept;

  // The block as it is written to the file, including its header; valid until clear().
  std::span<const std::byte> seal(std::uint32_t thread, std::uint32_t system_thread) noexcept;
  void clear() noexcept;

  // The number of a recently used name, found by its address; false when it is not cached. "" has number 0.
  bool find_name(const char* name, std::uint32_t& number) const noexcept {
    const KnownName& known = names_[slot_of(name)];
    number = *name == 0 ? 0 : known.number;
    return *name == 0 || known.name == name;
  }
  void remember_name(const char* name, std::uint32_t number) noexcept { names_[slot_of(name)] = {name, number}; }

 private:
  struct KnownName {
    const char* name = nullptr;
    std::uint32_t number = 0;
  };
  static std::size_t slot_of(const char* name) noexcept {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(name) * 0x9E3779B97F4A7C15u) >> 56);
  }
  std::byte* begin_event(TraceEventKind kind, std::int64_t time_ns) noexcept;
  std::byte* put_block(std::byte* at, std::uint64_t block) noexcept;
  std::byte* put_place(std::byte* at, const TracePlace& place) noexcept;
  static std::byte* put_text(std::byte* at, std::string_view text) noexcept;
  void end_event(std::byte* at) noexcept;

  std::size_t used_ = trace_format::kBlockHeaderBytes;
  std::uint32_t events_ = 0;
  std::int64_t base_time_ = 0, last_time_ = 0;
  std::uint64_t last_block_ = 0;
  std::array<KnownName, 256> names_{};
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace plimsoll::internal
