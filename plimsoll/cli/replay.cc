#include "plimsoll/cli/replay.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/replay_pass.h"
#include "plimsoll/memory/bfc_resource.h"

namespace plimsoll {
namespace {

// Address space enough for any policy to run the trace.
std::size_t ample(const Trace& trace) {
  const std::size_t most = std::size_t{1} << 46;
  return trace.peak_live >= most / 4 ? most : std::max(8_GiB, std::bit_ceil(trace.peak_live * 4));
}

BfcOptions bfc_options(const Trace& trace, const ReplayOptions& options) {
  return {.name = "bfc",
          .limit = options.limit > 0 ? options.limit : ample(trace),
          .growth = options.growth || options.limit == 0};
}

std::vector<OccupancyExtent> occupancy(const BfcResource& memory) {
  std::vector<OccupancyExtent> result;
  for (const BfcExtent& extent : memory.extents())
    result.push_back({.size = extent.size,
                      .requested = extent.requested,
                      .resident = extent.size,
                      .kind = extent.requested > 0 ? OccupancyKind::kUsed : OccupancyKind::kFree});
  return result;
}

// The untimed pass: everything that is counted in bytes.
template <class Memory>
void measure_bytes(const Trace& trace, const ReplayOptions& options, Memory& memory, ReplayResult& result) {
  std::vector<Block> blocks(trace.slots);
  result.refusals = replay_pass(trace, memory, blocks, {.touch = options.touch}, [&](std::size_t index) {
    if (index == trace.peak_at) result.at_peak = occupancy(memory);
  });
  release_all(memory, blocks);
  const MemoryStats stats = memory.stats();
  result.peak_in_use = stats.peak_bytes_in_use;
  result.peak_reserved = stats.peak_bytes_reserved;
  result.limit = stats.bytes_limit;
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
  if (options.repeat > 0) result.ns_per_op_mean = total / options.repeat;
}

ReplayResult replay_bfc(const Trace& trace, const ReplayOptions& options) {
  ReplayResult result;
  {
    BfcResource fresh(bfc_options(trace, options));
    measure_bytes(trace, options, fresh, result);
  }
  BfcResource warm(bfc_options(trace, options));
  measure_time(trace, options, warm, result);
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
  if (options.policy == ReplayPolicy::kArena)
    throw Unsupported("replay: policy \"arena\" is not in this build; use --policy bfc");
  if (options.progress) options.progress(1, options.repeat + 1);
  return replay_bfc(trace, options);
}

std::size_t smallest_bfc_pool(const Trace& trace) {
  std::size_t too_small = trace.peak_live;
  std::size_t enough = std::max<std::size_t>(too_small, 256);
  while (!runs_in_bfc_pool(trace, enough)) {
    too_small = enough;
    enough += enough / 2;
  }
  while (enough > too_small && enough - too_small > std::max<std::size_t>(trace.peak_live / 500, 256)) {
    const std::size_t middle = too_small + (enough - too_small) / 2;
    (runs_in_bfc_pool(trace, middle) ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace plimsoll
