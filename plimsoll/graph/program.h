// Program: a rewritten graph, ready to run: steps in order, the place of every buffer in one extent, prepared views.
//
// A run allocates the extent and the results, and nothing else. Everything that can fail is acquired before the first
// step. Thread safety: any thread may run it; each running call has its own extent.
//
// A program is a family: the natural plan, and leaner ones that drop values and recompute them, to the bit. The leaner
// ones are computed when somebody asks for them, or when a run that may recompute does not fit otherwise.
//   for (const BudgetPoint& point : program.front()) ...   // natural first, each leaner and slower than the one before
//   program.run({..., .own = &budget, .may_recompute = true});
// With a spill file values may also be stored and loaded. The front (with kSpill) then has the best of both.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/memory_plan.h"
#include "plimsoll/graph/program_tables.h"
#include "plimsoll/graph/rewrite.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/ops/random.h"

namespace plimsoll::internal {

// The numbers that calls without a seed drew, by their tickets, and those that seeds of a stream represented: what a
// gradient needs to draw the same numbers.
using Draws = std::vector<RandomDraw>;

// Called with the fetched values, which are in the extent.
using ReadInside = FunctionRef<void(std::span<const ConstTensorView> fetched)>;

// Called after every step with the fetches that no later step reads or writes: their results are complete.
using AfterStep = FunctionRef<void(std::span<const ProgramTables::FetchEnd> ended)>;

// Variables whose bytes are elsewhere: before a step that reads them they are brought into `room`, unless the step
// before it read them too. What the functions throw, run() throws.
struct BorrowedVariables {
  std::vector<bool> is_borrowed;                                         // By number in variables().
  std::span<std::byte> room;                                             // borrowed_bytes(), aligned to 64 bytes.
  FunctionRef<void(std::uint32_t variable, std::byte* to)> begin_fetch;  // Of all of its bytes.
  FunctionRef<void()> wait;                                              // For all that have begun.
  FunctionRef<void()> before_step;                                       // Of any kind.
};

// What a run may do to use less memory.
enum class Eviction : std::uint8_t {
  kRecompute,
  kSpill,           // Store values in a spill file, too.
  kSpillVariables,  // And keep large variables there except during the steps that use them.
};

// The memory and cost of a way to run.
struct ProgramPoint {
  std::size_t bytes = 0;         // In blocks.
  double slowdown = 1;           // Predicted.
  std::size_t parked_bytes = 0;  // Of variables that are in the spill file instead of in memory.

  std::ptrdiff_t net() const noexcept {
    return static_cast<std::ptrdiff_t>(bytes) - static_cast<std::ptrdiff_t>(parked_bytes);
  }
};

struct ProgramCall {
  std::span<const Tensor* const> feeds;
  std::span<const Variable> variables;  // One for each of variables().
  std::span<Tensor> results;            // One per fetch, unless they stay inside.
  const ReadInside* read = nullptr;     // For a program whose fetches stay inside.
  const AfterStep* after_step = nullptr;
  const BorrowedVariables* borrowed = nullptr;
  const Draws* given_draws = nullptr;  // Used where they have the ticket.
  Draws* drawn = nullptr;              // Draws are added to it, if set.
  std::string_view where = "run";      // Who runs it, for refusals.
  const Budget* own = nullptr;         // The caller's budget, in addition to the BudgetScope around.
  bool may_recompute = false;          // When the natural plan does not fit, use the cheapest one that does.
  double max_slowdown = 8;             // Plans predicted to be slower are not used; there are none above 8.
  double* recomputed_cost_fraction =
      nullptr;  // Set before the first step: how much of the run's cost is repeated work.
  // A run that may recompute may also store values there. It reserves the space before the first step, which may be
  // refused (OutOfMemory); later failures (Error, Corruption) occur before anything has changed.
  SpillFile* spill = nullptr;
  bool parks_variables = false;          // It may also keep variables there, which then stay there.
  std::size_t* spilled_bytes = nullptr;  // Bytes that the run stores are added to it.

  Eviction eviction() const noexcept {
    if (!spill) return Eviction::kRecompute;
    return parks_variables ? Eviction::kSpillVariables : Eviction::kSpill;
  }
};

// An error of an op that runs programs: run() does not throw, so the enclosing program throws it.
std::exception_ptr& pending_error() noexcept;

class ProgramFamily;
class ProgramVariant;

class Program {
 public:
  static constexpr double kMostSlowdown = 8;

  // How much of a value is stored or loaded while an op of cost 1 runs: a nominal rate, so that plans are the same on
  // every machine. A gigabyte per second where a unit of cost takes 15 ps.
  static constexpr double kSpillBytesPerCost = 0.015;

  // `inside`: fetched values stay in the extent, for a reader, and take no memory of their own.
  Program(Rewritten rewritten, const Passes& passes, bool inside = false,
          double spill_bytes_per_cost = kSpillBytesPerCost);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Throws OutOfMemory, and InvalidArgument for elements that an op refuses; both before the first step, when nothing
  // has changed. Blocks are charged to the surrounding BudgetScope, or to call.own if that is part of it; if not,
  // call.own is charged for what variables take, and for the blocks' bytes while the program runs.
  void run(const ProgramCall& call);

  // Inside an op: no variables, memory provided. Requires a program whose results are made by ops of their own, and
  // extent_bytes() of memory; throws what an op's check throws.
  void run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results, std::byte* extent);
  std::size_t extent_bytes() const noexcept { return memory_plan().extent_bytes; }
  std::size_t staged_bytes() const noexcept { return tables().staged_bytes; }  // Part of block_bytes().
  // The budget that a natural run needs, in blocks, without what variables take.
  std::size_t block_bytes() const noexcept;

  // The alternatives to block_bytes(), natural first, each leaner and slower than the one before. Computed once, by
  // counted work, so the same on every machine, whatever ran before. With parked variables, leaner by what they no
  // longer take; front() is for the kinds that park none.
  const std::vector<ProgramPoint>& points(Eviction eviction) const;
  std::vector<BudgetPoint> front(Eviction eviction = Eviction::kRecompute) const;
  // Indices into variables() of those that points with parked_bytes park.
  const std::vector<std::uint32_t>& parked_variables() const;
  // The gate: with this many bytes a run that may recompute succeeds, with one less it is refused.
  std::size_t smallest_block_bytes(double max_slowdown = kMostSlowdown,
                                   Eviction eviction = Eviction::kRecompute) const {
    return smallest_point(max_slowdown, eviction).bytes;
  }
  ProgramPoint smallest_point(double max_slowdown, Eviction eviction) const;
  // No schedule of these steps in this order needs less; and the step that determines it, as its scope and op.
  std::size_t floor_bytes(Eviction eviction = Eviction::kRecompute) const { return floor(eviction).bytes; }
  ProgramPoint floor(Eviction eviction) const;
  std::string floor_step(Eviction eviction = Eviction::kRecompute) const;
  bool is_too_long_to_recompute() const;  // True: no leaner plans were computed.
  // The plan of that point of front(); 0 is memory_plan().
  const MemoryPlan& memory_plan_of(std::size_t point, Eviction eviction = Eviction::kRecompute) const;
  MemoryPlan memory_plan_with_front(Eviction eviction = Eviction::kRecompute) const;

  // The room that the steps of any plan need for these variables. Throws Unsupported if one of them is a result, or
  // changes.
  std::size_t borrowed_bytes(const std::vector<bool>& is_borrowed) const;

  using VariableUse = ProgramVariable;
  const std::vector<VariableUse>& variables() const noexcept { return tables().variables; }
  const GraphState& graph() const noexcept { return *tables().graph; }
  const MemoryPlan& memory_plan() const noexcept { return tables().plan; }
  std::size_t num_steps() const noexcept { return tables().steps.size(); }
  std::size_t num_fetches() const noexcept { return tables().fetches.size(); }
  const TensorSpec& fetch_spec(std::size_t fetch) const noexcept { return tables().fetch_spec(fetch); }
  std::size_t bytes() const noexcept;  // Of its own bookkeeping and its constants, for caches.
  // Space that runs have reserved in spill files is kept for the next run; this frees it, and closes files that nothing
  // else uses.
  void release_slots() const noexcept;

 private:
  const ProgramTables& tables() const noexcept;    // Of the natural plan.
  struct Front;                                    // Of one kind of eviction.
  const Front& front_of(Eviction eviction) const;  // Made on first use.
  const std::vector<ProgramPoint>& points_for(const ProgramCall& call) const;
  const ProgramFamily& floor_family(Eviction eviction) const;
  void run_charged(const ProgramCall& call);
  void run_point(std::size_t point, const ProgramCall& call);  // One of front(), of the call's kind.
  // The cheapest point that fits the budgets that the calling thread's blocks are charged to. Throws OutOfMemory when
  // there is none, with the limit that would suffice. `with_variables`: includes what a variable takes that has no
  // bytes yet, or that will be changed and whose bytes are also held elsewhere.
  std::size_t choose_point(const ProgramCall& call, bool with_variables) const;
  std::size_t most_bytes() const noexcept;
  std::size_t variable_bytes(const ProgramCall& call, bool parks) const;
  [[noreturn]] void refuse_room(const BudgetNode& budget, std::size_t least, const ProgramCall& call) const;

  const Rewritten rewritten_;
  const Passes passes_;
  const bool inside_;
  const double spill_bytes_per_cost_;
  std::unique_ptr<ProgramVariant> natural_;
  std::size_t most_bytes_ = 0;  // Of a natural run.
  mutable std::mutex mutex_;
  mutable std::array<std::atomic<const Front*>, 3> fronts_{};  // By eviction. Set once, under mutex_.
  mutable std::array<std::unique_ptr<const Front>, 3> owned_fronts_;
};

}  // namespace plimsoll::internal
