// Program: a rewritten graph, ready to run: steps in order, every buffer's place in one extent, views made beforehand.
//
// A run takes the extent and the results' memory, and nothing else; in a steady state it allocates nothing besides.
// Everything that can fail is obtained before the first step. Thread safety: any thread may run it; each running call
// has an extent of its own.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/memory_plan.h"
#include "plimsoll/graph/rewrite.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/trace/trace_plan.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {

// The numbers that calls without a seed drew, by their tickets, and those that seeds of a stream stood for: what a
// gradient needs to draw the same.
using Draws = std::vector<RandomDraw>;

// Called with the fetched values, which lie in the extent.
using ReadInside = FunctionRef<void(std::span<const ConstTensorView> fetched)>;

struct ProgramCall {
  std::span<const Tensor* const> feeds;
  std::span<const Variable> variables;  // One for each of variables().
  std::span<Tensor> results;            // One for each fetch, unless they stay inside.
  const ReadInside* read = nullptr;     // Of a program whose fetches stay inside.
  const Draws* given_draws = nullptr;   // Used where they have the ticket.
  Draws* drawn = nullptr;               // Added to, when asked for.
  std::string_view where = "run";       // In refusals: who runs it.
  const Budget* own = nullptr;          // A budget of whoever runs it, that binds it beside the BudgetScope around.
};

// What an op that runs programs could not say, since run() does not throw: thrown by the program that ran the op.
std::exception_ptr& pending_error() noexcept;

class Program {
 public:
  // `inside`: what is fetched stays in the extent, for a reader, and takes no memory of its own.
  Program(Rewritten rewritten, const Passes& passes, bool inside = false);
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
  std::size_t extent_bytes() const noexcept { return plan_.extent_bytes; }
  // What a run takes of a budget, in blocks, beside what variables take.
  std::size_t block_bytes() const noexcept;

  struct VariableUse {
    std::uint32_t number = 0;  // In the graph.
    bool writes = false;
  };
  const std::vector<VariableUse>& variables() const noexcept { return variables_; }
  const GraphState& graph() const noexcept { return *graph_; }
  const MemoryPlan& memory_plan() const noexcept { return plan_; }
  std::size_t num_steps() const noexcept { return steps_.size(); }
  std::size_t num_fetches() const noexcept { return fetches_.size(); }
  const TensorSpec& fetch_spec(std::size_t fetch) const noexcept { return graph_->output(fetch_values_[fetch]).spec; }
  std::size_t bytes() const noexcept;  // Of its own bookkeeping and the constants it holds, for caches.

 private:
  friend class ProgramBuilder;
  static constexpr std::uint32_t kNoBase = UINT32_MAX;
  static constexpr std::uint32_t kOutBit = std::uint32_t{1} << 31;

  struct Step {
    const Op* op;
    std::uint32_t first_in, num_in, first_out, num_out;
    std::uint32_t extent;  // The base its scratch is in.
    std::size_t scratch_offset, scratch_bytes;
    bool checks;
  };
  struct View {  // An operand of a step.
    std::uint32_t base;
    std::size_t offset;
    TensorSpec spec;
  };
  struct Extent {
    Device* device;
    std::size_t bytes;
  };
  struct Result {  // A fetched value.
    enum class Kind : std::uint8_t { kStorage, kFeed, kConstant, kVariable, kNothing } kind = Kind::kNothing;
    std::uint32_t number = 0;
    std::size_t offset = 0;
  };
  struct ResultStorage {
    Device* device;
    std::size_t bytes;
    const char* op;
    TensorSpec spec;
  };
  struct RandomStep {
    std::uint32_t step;
    std::uint32_t ticket;  // Among tickets_.
  };
  struct Ticket {
    std::uint64_t number;
    std::size_t elements;
  };
  // A step with a seed that a stream gives.
  struct SeededStep {
    std::uint32_t step;
    std::uint32_t seed;  // Among the graph's.
  };
  struct Effect {
    std::shared_ptr<RunEffect> effect;
    std::size_t times;
  };
  struct Advance {  // How many seeds a run takes of a stream.
    std::shared_ptr<SeedStream> stream;
    std::uint64_t count;
  };
  struct Context;
  class Running;

  void run_charged(const ProgramCall& call);
  void run_now(const ProgramCall& call);  // What variables take is charged to call.own, if there is one.
  // Throws OutOfMemory when a budget that the calling thread's blocks are charged to has less left than the run takes,
  // and says the limit that would do. `with_variables`: also what a variable takes that has no bytes yet, or that is to
  // be changed and whose bytes are held elsewhere too.
  void require_room(const ProgramCall& call, bool with_variables) const;
  std::size_t most_bytes() const noexcept;
  std::size_t variable_bytes(std::span<const Variable> variables) const;
  [[noreturn]] void refuse_room(const BudgetNode& budget, std::size_t needed, std::string_view where) const;
  std::unique_ptr<Context> obtain_context();
  void give_back(std::unique_ptr<Context> context) noexcept;

  std::shared_ptr<GraphState> graph_;
  std::vector<Step> steps_;
  std::vector<View> in_, out_;
  // Bases: extents, result storages, feeds, constants, variables, in this order; and which views each one has.
  std::vector<Extent> extents_;
  std::vector<ResultStorage> storages_;
  std::vector<std::uint32_t> feed_base_;
  std::vector<Storage*> constants_;
  std::vector<VariableUse> variables_;
  std::uint32_t first_storage_ = 0, first_feed_ = 0, first_constant_ = 0, first_variable_ = 0, num_bases_ = 0;
  std::vector<std::uint32_t> base_views_begin_, base_views_;
  std::vector<Result> fetches_;
  std::vector<ValueId> fetch_values_;
  std::vector<RandomStep> random_steps_;
  std::vector<Ticket> tickets_;
  std::vector<SeededStep> seeded_steps_;
  std::vector<Advance> advances_;
  std::vector<Effect> effects_;  // By address: the order they begin in.
  std::vector<std::unique_ptr<Op>> own_ops_;
  std::vector<std::uint32_t> write_order_;  // Of variables_, by id: the order locks are taken in.
  MemoryPlan plan_;
  PlacedValues placed_;         // The same for traces.
  std::size_t most_bytes_ = 0;  // Of a run.
  const bool inside_;
  std::uint32_t first_fetched_ = 0;  // Among in_: views of the fetches that stay inside.

  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> spare_;  // Guarded by mutex_.
};

}  // namespace plimsoll
