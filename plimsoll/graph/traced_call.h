// TracedCall: some values of a graph as a function of others, which can be called and differentiated.
//
// Called under a tape that watches one of its operands, it runs with the values that the gradient will read as
// additional results, and the tape records one operation; the gradient is a TracedCall again, so it can be
// differentiated in turn. Thread safety: any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"

namespace plimsoll::internal {

class TracedCall : public std::enable_shared_from_this<TracedCall> {
 public:
  // `feeds` become the operands, in order, `fetches` the results. All sizes are known, all variables eager. `effects`:
  // changes of variables happen.
  static std::shared_ptr<TracedCall> make(std::shared_ptr<GraphState> graph, std::vector<ValueId> feeds,
                                          std::vector<ValueId> fetches, bool effects, const Passes& passes);

  // Throws what Program::run throws; `where` names the caller in refusals. `may_recompute`: use a leaner plan when the
  // natural one does not fit; `spill`: which may store values there.
  void call(std::span<const Tensor* const> feeds, std::span<Tensor> results, const Draws* draws = nullptr,
            std::string_view where = "function", bool may_recompute = false, SpillFile* spill = nullptr);
  std::vector<Tensor> call(std::span<const Tensor* const> feeds, const Draws* draws = nullptr);
  MemoryPlan memory_plan(Eviction eviction = Eviction::kRecompute);  // With its front.
  std::size_t bytes();                                               // Of its bookkeeping.

  std::size_t num_feeds() const noexcept { return feeds_.size(); }
  std::size_t num_fetches() const noexcept { return fetches_.size(); }

 private:
  friend class CallOp;
  // The source of a value that the gradient reads: an operand of the call, or one of its results.
  struct Source {
    bool from_operand;
    std::size_t number;
  };
  // Made when a tape first watches a call.
  struct Differentiated {
    std::shared_ptr<GraphState> joint;        // Forward and backward in one graph.
    std::vector<Variable> operand_variables;  // The operands after the feeds.
    std::shared_ptr<Program> forward;         // Computes the results, then the saved values.
    std::vector<Variable> forward_variables;
    std::size_t num_saved = 0;
    std::vector<Source> sources;                            // Of the first operands of backward.
    std::vector<std::size_t> seeded;                        // The results whose gradients are the next operands.
    std::vector<ValueId> backward_feeds;                    // Both, in the joint graph.
    std::vector<ValueId> gradients;                         // For each operand; kNoNode: none.
    PlanCache<TracedCall> backward{std::size_t{16} << 20};  // By the operands whose gradients are requested.
    std::vector<ValueId> operands, outputs;                 // Of forward, in the joint graph.
    std::vector<TensorSpec> output_specs;
    std::shared_ptr<TracedCall> whole;  // From operands and gradients of all outputs; made on request.
    std::vector<bool> whole_has;        // Which operands it has gradients for.
  };

  TracedCall(std::shared_ptr<GraphState> graph, std::vector<ValueId> feeds, std::vector<ValueId> fetches, bool effects,
             const Passes& passes)
      : graph_(std::move(graph)),
        feeds_(std::move(feeds)),
        fetches_(std::move(fetches)),
        effects_(effects),
        passes_(passes) {}

  Program& program();
  Differentiated& differentiated();
  TracedCall& whole();
  bool call_watched(std::span<const Tensor* const> feeds, std::span<Tensor> results, const Draws* draws,
                    std::string_view where, bool may_recompute, SpillFile* spill, Interceptor& interceptor);
  std::vector<Feed> feed_specs() const;
  static std::vector<Variable> variables_of(const Program& program);

  const std::shared_ptr<GraphState> graph_;
  const std::vector<ValueId> feeds_, fetches_;
  const bool effects_;
  const Passes passes_;
  std::mutex mutex_;  // Guards making the rest; what is made does not change.
  std::shared_ptr<Program> program_;
  std::vector<Variable> variables_;  // Of program_.
  std::atomic<Program*> ready_{nullptr};
  std::unique_ptr<Differentiated> differentiated_;
};

}  // namespace plimsoll::internal
