// Program: a rewritten graph, ready to run: steps in order, every buffer's place in one extent, views made beforehand.
//
// A run takes the extent and the results' memory, and nothing else; in a steady state it allocates nothing besides.
// Everything that can fail is obtained before the first step. Thread safety: any thread may run it; each running call
// has an extent of its own.
//
// A program is a family: the natural plan, and leaner ones that drop values and compute them again, to the bit. Those
// are looked for when somebody asks for them, or when a run that may recompute does not fit otherwise.
//   for (const BudgetPoint& point : program.front()) ...   // natural first, each leaner and slower than the one before
//   program.run({..., .own = &budget, .may_recompute = true});
// With a spill file values may also be stored and loaded. Then the front (with kSpill) has the best of both.
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

// The numbers that calls without a seed drew, by their tickets, and those that seeds of a stream stood for: what a
// gradient needs to draw the same.
using Draws = std::vector<RandomDraw>;

// Called with the fetched values, which lie in the extent.
using ReadInside = FunctionRef<void(std::span<const ConstTensorView> fetched)>;

// Called after every step, with the fetches that no later step touches: their results have their values.
using AfterStep = FunctionRef<void(std::span<const ProgramTables::FetchEnd> ended)>;

// What a run may do to take less.
enum class Eviction : std::uint8_t {
  kRecompute,
  kSpill,           // Store values in a spill file, too.
  kSpillVariables,  // And keep large variables there, but for the steps that use them.
};

// What a run can take.
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
  std::span<Tensor> results;            // One for each fetch, unless they stay inside.
  const ReadInside* read = nullptr;     // Of a program whose fetches stay inside.
  const AfterStep* after_step = nullptr;
  const Draws* given_draws = nullptr;   // Used where they have the ticket.
  Draws* drawn = nullptr;               // Added to, when asked for.
  std::string_view where = "run";       // In refusals: who runs it.
  const Budget* own = nullptr;          // A budget of whoever runs it, that binds it beside the BudgetScope around.
  bool may_recompute = false;           // Where the natural plan does not fit, the cheapest one that does.
  double max_slowdown = 8;              // Plans that are predicted to be slower are not used; above 8 there are none.
  double* recomputed_cost_fraction =
      nullptr;  // Set before the first step: how much of the run's cost is repeated work.
  // A run that may recompute may store values there, too. It reserves what it stores before the first step, which may
  // be refused (OutOfMemory); what fails later (Error, Corruption) does so before anything has changed.
  SpillFile* spill = nullptr;
  bool parks_variables = false;          // It may keep variables there, too, which then stay there.
  std::size_t* spilled_bytes = nullptr;  // What the run stores is added.

  Eviction eviction() const noexcept {
    if (!spill) return Eviction::kRecompute;
    return parks_variables ? Eviction::kSpillVariables : Eviction::kSpill;
  }
};

// What an op that runs programs could not say, since run() does not throw: thrown by the program that ran the op.
std::exception_ptr& pending_error() noexcept;

class ProgramFamily;
class ProgramVariant;

class Program {
 public:
  static constexpr double kMostSlowdown = 8;

  // How much of a value is stored or loaded while an op of cost 1 runs: nominal, so that plans are the same on every
  // machine. A gigabyte per second where a unit of cost takes 15 ps.
  static constexpr double kSpillBytesPerCost = 0.015;

  // `inside`: what is fetched stays in the extent, for a reader, and takes no memory of its own.
  Program(Rewritten rewritten, const Passes& passes, bool inside = false,
          double spill_bytes_per_cost = kSpillBytesPerCost);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Throws OutOfMemory, and InvalidArgument for elements that an op refuses; before the first step, nothing has
  // changed. Blocks are charged to the BudgetScope around, or to call.own where that is part of it; where it is not,
  // call.own has what variables take, and the blocks' bytes while the program runs.
  void run(const ProgramCall& call);

  // Inside of an op: no variables, memory given. Requires a program whose results are made by ops of their own, and
  // extent_bytes() of memory; throws what an op's check throws.
  void run_inside(std::span<const ConstTensorView> feeds, std::span<const TensorView> results, std::byte* extent);
  std::size_t extent_bytes() const noexcept { return memory_plan().extent_bytes; }
  // What a natural run takes of a budget, in blocks, beside what variables take.
  std::size_t block_bytes() const noexcept;

  // What runs can take in place of block_bytes(), natural first, each leaner and slower than the one before. Looked for
  // once: by counted work, so the same on every machine, whatever ran before. With parked variables, leaner by what is
  // taken less of them; front() is for the kinds that park none.
  const std::vector<ProgramPoint>& points(Eviction eviction) const;
  std::vector<BudgetPoint> front(Eviction eviction = Eviction::kRecompute) const;
  // Of variables(), those that points with parked_bytes park.
  const std::vector<std::uint32_t>& parked_variables() const;
  // The gate: with so many bytes left a run that may recompute happens, with one less it is refused.
  std::size_t smallest_block_bytes(double max_slowdown = kMostSlowdown,
                                   Eviction eviction = Eviction::kRecompute) const {
    return smallest_point(max_slowdown, eviction).bytes;
  }
  ProgramPoint smallest_point(double max_slowdown, Eviction eviction) const;
  // No schedule of these steps in this order takes less; and the step that makes it so, as its scope and op.
  std::size_t floor_bytes(Eviction eviction = Eviction::kRecompute) const { return floor(eviction).bytes; }
  ProgramPoint floor(Eviction eviction) const;
  std::string floor_step(Eviction eviction = Eviction::kRecompute) const;
  bool is_too_long_to_recompute() const;  // So that no leaner plans were looked for.
  // Of that one of front(); 0 is memory_plan().
  const MemoryPlan& memory_plan_of(std::size_t point, Eviction eviction = Eviction::kRecompute) const;
  MemoryPlan memory_plan_with_front(Eviction eviction = Eviction::kRecompute) const;

  using VariableUse = ProgramVariable;
  const std::vector<VariableUse>& variables() const noexcept { return tables().variables; }
  const GraphState& graph() const noexcept { return *tables().graph; }
  const MemoryPlan& memory_plan() const noexcept { return tables().plan; }
  std::size_t num_steps() const noexcept { return tables().steps.size(); }
  std::size_t num_fetches() const noexcept { return tables().fetches.size(); }
  const TensorSpec& fetch_spec(std::size_t fetch) const noexcept { return tables().fetch_spec(fetch); }
  std::size_t bytes() const noexcept;  // Of its own bookkeeping and the constants it holds, for caches.
  // What runs have reserved in spill files is kept for the next one; this gives it back, and closes files that nobody
  // else has.
  void release_slots() const noexcept;

 private:
  const ProgramTables& tables() const noexcept;    // Of the natural plan.
  struct Front;                                    // Of one kind of eviction.
  const Front& front_of(Eviction eviction) const;  // Made when first asked for.
  const std::vector<ProgramPoint>& points_for(const ProgramCall& call) const;
  const ProgramFamily& floor_family(Eviction eviction) const;
  void run_charged(const ProgramCall& call);
  void run_point(std::size_t point, const ProgramCall& call);  // One of front(), of the call's kind.
  // The cheapest point that has room in the budgets that the calling thread's blocks are charged to. Throws OutOfMemory
  // when there is none, and says the limit that would do. `with_variables`: also room for what a variable takes that
  // has no bytes yet, or that is to be changed and whose bytes are held elsewhere too.
  std::size_t choose_point(const ProgramCall& call, bool with_variables) const;
  std::size_t most_bytes() const noexcept;
  std::size_t variable_bytes(std::span<const Variable> variables, bool parks) const;
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
