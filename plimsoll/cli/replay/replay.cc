#include "plimsoll/cli/replay/replay.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/replay/replay_pass.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/bfc/bfc_resource.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll::internal {
namespace {

// Enough address space for any policy to run the trace.
std::size_t ample(const Trace& trace) {
  const std::size_t most = kMostLimit;
  return trace.peak_live >= most / 8 ? most : std::max(8_GiB, std::bit_ceil(trace.peak_live * 4));
}

// An arena together with its pages.
class ArenaUnderReplay {
 public:
  ArenaUnderReplay(const Trace& trace, const ReplayOptions& options)
      : arena_(
            pages_,
            {.name = "replay", .limit = options.limit > 0 ? options.limit : ample(trace), .growth = options.growth}) {}

  Block allocate(std::size_t bytes) { return arena_.allocate(bytes); }
  void deallocate(const Block& block) { arena_.deallocate(block); }
  MemoryStats stats() const { return arena_.stats(); }
  std::size_t pages_moved() const { return arena_.move_counters().pages_moved; }

  std::vector<OccupancyExtent> occupancy() const {
    std::vector<OccupancyExtent> result;
    for (const ArenaExtent& extent : arena_.extents())
      result.push_back({.size = extent.size,
                        .requested = extent.requested,
                        .resident = extent.resident_bytes,
                        .kind = extent.state == ExtentState::kUsed     ? OccupancyKind::kUsed
                                : extent.state == ExtentState::kCached ? OccupancyKind::kCached
                                                                       : OccupancyKind::kFree});
    return result;
  }

 private:
  HostPageSource pages_;
  Arena arena_;
};

class BfcUnderReplay {
 public:
  BfcUnderReplay(const Trace& trace, const ReplayOptions& options)
      : bfc_({.limit = options.limit > 0 ? options.limit : ample(trace),
              .growth = options.growth || options.limit == 0}) {}

  Block allocate(std::size_t bytes) { return bfc_.allocate(bytes); }
  void deallocate(const Block& block) { bfc_.deallocate(block); }
  MemoryStats stats() const { return bfc_.stats(); }
  std::size_t pages_moved() const { return 0; }

  std::vector<OccupancyExtent> occupancy() const {
    std::vector<OccupancyExtent> result;
    for (const BfcExtent& extent : bfc_.extents())
      result.push_back({.size = extent.size,
                        .requested = extent.requested,
                        .resident = extent.size,
                        .kind = extent.requested > 0 ? OccupancyKind::kUsed : OccupancyKind::kFree});
    return result;
  }

 private:
  BfcResource bfc_;
};

// The untimed pass: everything that is counted in bytes.
template <class Memory>
void measure_bytes(const Trace& trace, const ReplayOptions& options, Memory& memory, ReplayResult& result) {
  std::vector<Block> blocks(trace.slots);
  result.refusals = replay_pass(trace, memory, blocks, {.touch = options.touch}, [&](std::size_t index) {
    if (index == trace.peak_at) result.at_peak = memory.occupancy();
  });
  release_all(memory, blocks);
  const MemoryStats stats = memory.stats();
  result.peak_in_use = stats.peak_bytes_in_use;
  result.peak_reserved = stats.peak_bytes_reserved;
  result.limit = stats.bytes_limit;
  result.pages_moved = memory.pages_moved();
}

template <class Memory>
void measure_time(const Trace& trace, const ReplayOptions& options, Memory& memory, ReplayResult& result) {
  std::vector<Block> blocks(trace.slots);
  const double operations = static_cast<double>(std::max<std::size_t>(trace.operations.size(), 1));
  double total = 0;
  for (int pass = 0; pass < options.repeat; ++pass) {
    if (options.progress) options.progress(pass + 2, options.repeat + 1);
    const double begin = thread_cpu_ns();
    replay_pass(trace, memory, blocks, {.touch = options.touch});
    const double each = (thread_cpu_ns() - begin) / operations;
    release_all(memory, blocks);
    total += each;
    result.ns_per_op = pass == 0 ? each : std::min(result.ns_per_op, each);
  }
  result.ns_per_op_mean = total / options.repeat;
}

template <class Memory>
ReplayResult replay_over(const Trace& trace, const ReplayOptions& options) {
  ReplayResult result;
  {
    Memory fresh(trace, options);
    measure_bytes(trace, options, fresh, result);
  }
  if (options.repeat > 0) {
    Memory warm(trace, options);
    measure_time(trace, options, warm, result);
  }
  return result;
}

bool runs_in_bfc_pool(const Trace& trace, std::size_t pool) {
  BfcResource memory({.limit = pool});
  std::vector<Block> blocks(trace.slots);
  const bool runs = replay_pass(trace, memory, blocks, {.stop_at_refusal = true}) == 0;
  release_all(memory, blocks);
  return runs;
}

}  // namespace

const char* policy_name(ReplayPolicy policy) noexcept { return policy == ReplayPolicy::kBfc ? "bfc" : "arena"; }

ReplayResult replay(const Trace& trace, const ReplayOptions& options) {
  if (options.progress) options.progress(1, options.repeat + 1);
  return options.policy == ReplayPolicy::kBfc ? replay_over<BfcUnderReplay>(trace, options)
                                              : replay_over<ArenaUnderReplay>(trace, options);
}

std::size_t smallest_bfc_pool(const Trace& trace) {
  std::size_t too_small = trace.peak_live;
  std::size_t enough = std::max<std::size_t>(too_small, 256);
  const std::size_t most = enough > SIZE_MAX / 16 ? SIZE_MAX : enough * 16;  // Beyond that the system refuses.
  while (!runs_in_bfc_pool(trace, enough)) {
    if (enough >= most / 2) return 0;
    too_small = enough;
    enough += enough / 2;
  }
  while (enough > too_small && enough - too_small > std::max<std::size_t>(trace.peak_live / 500, 256)) {
    const std::size_t middle = too_small + (enough - too_small) / 2;
    (runs_in_bfc_pool(trace, middle) ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace plimsoll::internal
