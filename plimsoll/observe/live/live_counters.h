// LiveCounters: the memory figures that a process publishes while it runs, as plain data of fixed size.
//
//   for (const LiveCounters& process : read_live_processes())                    // live_file.h
//     std::cout << text_of(process.name) << ' ' << format_bytes(process.used()) << '\n';
//
// Names are truncated to the space available and end with a zero. Sizes are block bytes, rounding included. Nothing in
// a file is trusted: is_sound() checks that counts are in range and names end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll::internal {

struct LiveDevice {
  char name[32] = "";
  std::uint64_t used = 0, peak = 0, reserved = 0, peak_reserved = 0, limit = 0, allocations = 0, refusals = 0;
};

struct LiveBudget {
  char name[52] = "";
  std::int32_t parent = -1;  // Its index; -1 for none.
  std::uint64_t limit = 0, used = 0, peak = 0;
};

// Live blocks that one operation made in one name scope.
struct LiveHolder {
  char op[48] = "", scope[92] = "";
  std::uint32_t category = 0;
  std::uint64_t bytes = 0, blocks = 0;
};

struct LiveCounters {
  static constexpr std::size_t kDevices = 16, kBudgets = 64, kHolders = 16;

  char name[64] = "";
  std::uint32_t process = 0, interval_ms = 0;
  std::int64_t started_unix_ns = 0, updated_unix_ns = 0;
  std::uint64_t step = 0;
  std::uint32_t has_step = 0, is_recording = 0;  // A trace is being recorded.
  std::uint64_t resident = 0, peak_resident = 0, process_cpu_ns = 0;
  std::uint64_t publisher_cpu_ns = 0, publications = 0;  // The cost of publishing so far.
  std::uint64_t by_category[kCategories] = {};
  std::int64_t counted_unix_ns = 0;  // When categories and holders were counted: rarely when there are many blocks.
  std::uint32_t num_devices = 0, num_budgets = 0, num_holders = 0;
  std::uint32_t all_budgets = 0;  // Including those that do not fit.
  LiveDevice devices[kDevices];
  LiveBudget budgets[kBudgets];  // A parent comes before its children when both fit.
  LiveHolder holders[kHolders];  // Most bytes first.

  std::uint64_t used() const noexcept;  // Of all devices together, like the next three.
  std::uint64_t peak() const noexcept;
  std::uint64_t reserved() const noexcept;
  std::uint64_t refusals() const noexcept;
  int top_category() const noexcept;  // The one with the most bytes; -1 when nothing is live.
};
static_assert(std::is_trivially_copyable_v<LiveCounters> && sizeof(LiveCounters) % 8 == 0);

// The limit that is nearest to being reached, of all devices and budgets.
struct NearestLimit {
  std::string name;  // "CPU:0", "budget fit"; "" when there is none.
  std::uint64_t used = 0, limit = 0;
  double share() const noexcept { return limit == 0 ? 0 : static_cast<double>(used) / static_cast<double>(limit); }
};
NearestLimit nearest_limit(const LiveCounters& counters);

bool is_sound(const LiveCounters& counters) noexcept;

template <std::size_t kRoom>
void set_text(char (&room)[kRoom], const std::string& text) {
  const std::size_t size = text.size() < kRoom ? text.size() : kRoom - 1;
  text.copy(room, size);
  for (std::size_t i = size; i < kRoom; ++i) room[i] = 0;
}
// Valid UTF-8 without control characters: a file's text must not reach a terminal as commands.
std::string text_of(const char* name);

// Fills in what the process holds now. `count_blocks` visits all live blocks (categories and holders) while the threads
// of the process wait; otherwise those figures stay as they are.
void gather_live_counters(LiveCounters& counters, bool count_blocks);

// The counters as one JSON object, as `plimsoll top --json` prints them.
PLIMSOLL_API std::string live_json(const LiveCounters& counters, int indent = 2);
// In Prometheus' text format.
PLIMSOLL_API std::string metrics_text(const LiveCounters& counters);

}  // namespace plimsoll::internal
