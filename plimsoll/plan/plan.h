// plan(): places buffers with known lifetimes in one arena, as low as it can, and reports how good the plan is.
//
//   std::vector<Buffer> buffers = {{.size = 4096, .lower = 0, .upper = 3}, {.size = 512, .lower = 2, .upper = 9}};
//   Plan p = plan(buffers);          // p.offsets == {0, 4096}, p.peak == 4608
//   p.proof == Proof::kOptimal;      // No plan is smaller: p.peak == p.lower_bound
//
// A pure function: no global state, no files, no knowledge of tensors. It is anytime: a valid plan exists after
// milliseconds and improves until the deadline or until it is proved optimal. Two runs with the same input and the same
// node budget return the same bytes, also when both cores work, as long as the seconds of the deadline are not used up.
//
// Thread safety: may be called from any thread; uses up to `Deadline::threads` threads while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// A time inside a buffer's life in which its bytes are free for others, or all but those in [window_lower,
// window_upper).
struct Gap {
  std::int64_t lower = 0;
  std::int64_t upper = 0;        // Half-open, inside the buffer's lifetime, not touching another gap's inside.
  std::size_t window_lower = 0;  // Bytes of the buffer that stay in use meanwhile; an empty window frees them all.
  std::size_t window_upper = 0;
};

inline constexpr int kNoAliasSet = -1;

// Bytes that must keep their place from `lower` up to, not including, `upper`. Times are in any unit.
struct Buffer {
  std::size_t size = 0;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::size_t alignment = 1;
  std::vector<Gap> gaps;
  // Buffers of one alias set (>= 0) share bytes: views, in-place results, the parts of a concatenation. Member m lies
  // at the set's place + m.alias_offset; the set owns the bytes from its lowest to its highest member that lives.
  int alias_set = kNoAliasSet;
  std::size_t alias_offset = 0;
};

struct Constraints {
  // The arena's size. When given, planning ends with the first plan that fits it; otherwise the peak is made small.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
  std::size_t alignment = 1;  // At least this for every buffer.
};

// When to stop improving. A node is one placement tried, in any stage after the first greedy one.
struct Deadline {
  std::uint64_t nodes = std::numeric_limits<std::uint64_t>::max();
  double seconds = 10;
  int threads = 2;
};

enum class Proof {
  kOptimal,     // peak == lower_bound; no plan is smaller.
  kFeasible,    // A valid plan, within the capacity if there is one; the optimum is in [lower_bound, peak].
  kInfeasible,  // No plan fits the capacity: lower_bound says why. `offsets` hold the best plan found regardless of it.
  kUnknown,     // No plan within the capacity was found in time, and none was proved impossible. Offsets as above.
};

PLIMSOLL_API const char* to_string(Proof proof);  // "optimal", "feasible", "infeasible", "unknown"

struct Plan {
  std::vector<std::size_t> offsets;  // One per buffer, in the order given.
  std::size_t peak = 0;              // Largest offset + size.
  std::size_t lower_bound = 0;       // No plan has a smaller peak.
  Proof proof = Proof::kFeasible;
  std::uint64_t nodes = 0;        // Spent.
  double seconds = 0;             // Spent.
  double first_plan_seconds = 0;  // When the first valid plan existed.
};

// What a planner at work can say about itself.
struct PlanProgress {
  double seconds = 0;
  std::size_t peak = 0;
  std::size_t lower_bound = 0;
};

// Called now and then from the calling thread, at most about ten times a second. Never changes the outcome.
using PlanObserver = std::function<void(const PlanProgress&)>;

// Throws InvalidArgument for a buffer with lower >= upper, alignment 0, gaps outside of its life, windows outside of
// its size, or sizes whose sum does not fit std::size_t. Not fitting the capacity is an answer (`proof`), not an error.
// Cost: O(n log n) and milliseconds for the first plan; after that what the deadline gives.
PLIMSOLL_API Plan plan(std::span<const Buffer> buffers, const Constraints& constraints = {},
                       const Deadline& deadline = {}, const PlanObserver& observer = {});

}  // namespace plimsoll::internal
