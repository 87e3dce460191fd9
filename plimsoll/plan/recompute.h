// recompute(): finds how to run a step in fewer bytes than it naturally takes, by dropping values and recomputing them.
//
//   StepProgram program;                             // values with their bytes; steps that read and write them
//   program.values = {{.bytes = 100, .is_given = true}, {.bytes = 80}, {.bytes = 80}, {.bytes = 8, .is_kept = true}};
//   program.steps = {{.reads = {0}, .writes = {1}, .cost = 5}, {.reads = {1}, .writes = {2}, .cost = 7}, ...};
//   StepSchedule schedule = recompute(program, 240);
//   schedule.completed;                              // false: nothing within the limit was found
//   schedule.cost_factor();                          // 1.07: seven percent slower than without a limit
//   validate_schedule(program, schedule, 240);       // "" : an independent replay agrees
//
//   Front front = recompute_front(program);          // from the natural peak down to the leanest schedule found
//   front.smallest_peak();                           // the gate: at it there is a schedule, a byte below there is none
//   front.cheapest_within(limit);                    // a larger limit is never slower
//
// Steps run in the order given; between them earlier ones run again. A value is written once: a variable that changes
// is a chain of values, each taking the bytes of the one before, so a step that reads the old one cannot run again
// later. Pure functions that bound themselves by counted work, never by a clock: the same program gives the same
// schedule on every machine. Thread safety: may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct StepProgram {
  static constexpr int kNone = -1;

  // Occupies its bytes from the step that writes it through its last reader; a given one to the end.
  struct Value {
    std::size_t bytes = 0;
    bool is_given = false;   // There before the first step; no step writes it.
    bool is_kept = false;    // Wanted after the last step.
    bool is_pinned = false;  // Never dropped. Given and kept values and those of steps that may not repeat never are.
    bool may_spill = false;  // Its bytes may be stored elsewhere and loaded again, pinned or not.
    bool starts_stored = false;  // Given, and stored elsewhere when the program starts.
    int last_held = kNone;       // The last step during which its holder keeps it, if not as above; readers count.
  };

  struct Step {
    std::vector<int> reads;
    std::vector<int> writes;
    std::vector<int>
        takes_over;  // Per write: the value whose bytes it takes and which ends here, or kNone. May be empty.
    std::vector<int> may_take;  // Of its reads: the first write may take their bytes, where a schedule gives them up.
    std::size_t scratch_bytes = 0;
    std::uint64_t cost = 0;    // In any unit, such as nanoseconds or bytes touched.
    bool may_repeat = true;    // Pure: again with the same values it writes the same bytes.
    bool is_gradient = false;  // What it writes is dropped only when nothing else helps.
  };

  std::vector<Value> values;
  std::vector<Step> steps;
};

// Throws InvalidArgument, naming step and value: numbers out of range, a value written twice or read before it is
// there, read after it was taken over, one that takes over a value of another size, bytes or costs whose sum overflows.
PLIMSOLL_API void check_program(const StepProgram& program);

struct Floor {
  std::size_t bytes = 0;
  int step = StepProgram::kNone;  // That makes it; kNone for a program without steps.
};

// What no schedule can go below.
struct Floors {
  std::size_t natural_peak = 0;  // Every value held as long as its holder keeps it, nothing dropped.
  Floor recompute;               // Largest over steps: what may not be dropped, and what the step itself touches.
  Floor spill;                   // Largest over steps: what the step touches; with values that may not spill.
};
PLIMSOLL_API Floors floors_of(const StepProgram& program);

// The least that schedules within `limit` must spend on steps that run again, in units of cost. 0 when the natural peak
// fits; UINT64_MAX below the recompute floor. Valid, not always reachable; without spilling.
PLIMSOLL_API std::uint64_t recompute_bound(const StepProgram& program, std::size_t limit);

enum class Action : std::uint8_t {
  kRun,    // A step, for the first time.
  kAgain,  // A step that ran before: writes what it wrote then. What is there already is written aside and discarded.
  kDrop,   // A value's bytes are free from here. Waits for a store of it that is under way.
  kTake,   // The first result of the step that follows takes a value's bytes; it is dropped with that step.
  kStore,  // Starts to copy a value elsewhere; its bytes stay in use until it is dropped.
  kLoad,   // Starts to bring a stored value back; its bytes are in use from here, its first reader waits for it.
};

struct StepSchedule {
  struct Entry {
    Action action;
    int number;  // A step for kRun and kAgain, else a value.
    bool operator==(const Entry&) const = default;
  };

  bool completed = false;
  std::vector<Entry> entries;  // Empty unless completed. Values end with their last_held or last reader without a drop.
  std::size_t peak = 0;        // Most bytes at once, scratch included.
  std::uint64_t base_cost = 0;    // Of every step once.
  std::uint64_t again_cost = 0;   // Of steps that run again.
  std::uint64_t stall_cost = 0;   // Waiting for stores and loads.
  std::uint64_t lower_bound = 0;  // recompute_bound(), or 0 with spilling.
  std::size_t stored_bytes = 0;
  std::size_t evictions = 0;  // Values dropped that come back.
  std::uint64_t work = 0;     // Spent on finding it.

  std::uint64_t extra_cost() const { return again_cost + stall_cost; }
  PLIMSOLL_API double cost_factor() const;  // (base + again + stall) / base; 1 when the base is 0.
};

struct RecomputeOptions {
  double spill_bytes_per_cost = 0;  // How much of a value is stored or loaded while a cost of 1 passes; 0: no spilling.
  std::uint64_t work = 0;          // Victims looked at and steps simulated, about 20 ns each; 0: by the program's size.
  std::uint64_t attempt_work = 0;  // The most for one schedule while there is none within the limit; 0: 30 million.
  double most_cost_factor = 8;     // More expensive schedules are not considered.
  std::uint64_t group_cost = 0;    // What an online policy lets a group of dropped values cost; 0: 1/64 of the program.
  std::function<void(double)> progress = {};  // Called with the share of the work done; never changes the outcome.
};

// The cheapest schedule found whose peak is at most `limit`. Throws InvalidArgument as check_program does.
PLIMSOLL_API StepSchedule recompute(const StepProgram& program, std::size_t limit,
                                    const RecomputeOptions& options = {});

// The same for several limits. Facts about the program are computed once, and each limit starts with what worked well
// for those before it. Thread safety: one at a time.
//
//   RecomputePlanner planner(program);       // throws as check_program does; borrows the program
//   for (...) planner.within(limit);
class PLIMSOLL_API RecomputePlanner {
 public:
  explicit RecomputePlanner(const StepProgram& program);
  ~RecomputePlanner();
  RecomputePlanner(const RecomputePlanner&) = delete;
  RecomputePlanner& operator=(const RecomputePlanner&) = delete;

  StepSchedule within(std::size_t limit, const RecomputeOptions& options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a runtime that knows only the past would do; one pass.
enum class OnlinePolicy {
  kOnline,  // Cost over bytes and staleness, neighbours looked up through dead values, groups capped; gradients stay.
  kDtr,     // The same as published for DTR: neighbours by union-find, direct ones only.
  kLru,     // Least recently used.
};
PLIMSOLL_API StepSchedule recompute_online(const StepProgram& program, std::size_t limit, OnlinePolicy policy,
                                           const RecomputeOptions& options = {});

// Schedules from the natural peak down, each leaner and more expensive than the one before.
struct Front {
  std::vector<StepSchedule> schedules;

  PLIMSOLL_API std::size_t smallest_peak() const;                             // SIZE_MAX for an empty front.
  PLIMSOLL_API const StepSchedule* cheapest_within(std::size_t limit) const;  // nullptr below smallest_peak().
};

// Walks from the natural peak to the floor in 64 steps and keeps what is not dominated. `accept`, when given, may
// refuse a schedule (for example because it cannot be packed), which is then left out. `options.work` is for all of
// them together.
PLIMSOLL_API Front recompute_front(const StepProgram& program, const RecomputeOptions& options = {},
                                   const std::function<bool(const StepSchedule&)>& accept = {});

// Replays a schedule, sharing no code with the planner. Returns the first fault in words, or "": every step runs once
// and in order, what is read is there, only steps that may repeat run again (and not after a variable they read has
// changed), nothing unneeded is dropped twice or loaded unstored, the peak is within `limit` and equals the schedule's.
PLIMSOLL_API std::string validate_schedule(const StepProgram& program, const StepSchedule& schedule, std::size_t limit);

}  // namespace plimsoll::internal
