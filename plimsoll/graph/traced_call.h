// TracedCall: some values of a graph as a function of others: it can be called, and differentiated.
//
// Called under a tape that watches one of its operands, it runs with what the gradient will read as further results,
// and the tape remembers one operation; asked for gradients, that is a TracedCall again, so it can be differentiated in
// turn. Thread safety: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/plan_cache.h"
#include "plimsoll/graph/program.h"

namespace plimsoll {

class TracedCall : public std::enable_shared_from_this<TracedCall> {
 public:
  // `feeds` become the operands, in order, `fetches` the results; fetches of kNoNode give empty handles.
  static std::shared_ptr<TracedCall> make(std::shared_ptr<GraphState> graph, std::vector<ValueId> feeds,
                                          std::vector<ValueId> fetches, const Passes& passes);

  std::vector<Tensor> call(std::span<const Tensor* const> feeds, const Draws* draws = nullptr);
  const MemoryPlan& memory_plan();
  std::size_t bytes();  // Of its bookkeeping.

  std::size_t num_feeds() const noexcept { return feeds_.size(); }
  std::size_t num_fetches() const noexcept { return fetches_.size(); }

 private:
  friend class CallOp;
  // What is made when a tape first watches a call.
  struct Differentiated {
    std::shared_ptr<Program> forward;  // Results, then saved values.
    std::vector<Variable> variables;   // Of forward.
    std::size_t num_saved = 0;
    std::vector<int> saved_from;          // For each feed of backward: operand number, ~number of a saved value, ...
    std::shared_ptr<GraphState> joint;    // Forward and backward in one graph.
    std::vector<ValueId> gradients;       // For each operand, variables after feeds; kNoNode: none.
    std::vector<ValueId> backward_feeds;  // Saved values, then the gradients of the results.
    PlanCache<TracedCall> backward{std::size_t{16} << 20};  // By which gradients are asked for.
  };

  TracedCall(std::shared_ptr<GraphState> graph, std::vector<ValueId> feeds, std::vector<ValueId> fetches,
             const Passes& passes)
      : graph_(std::move(graph)), feeds_(std::move(feeds)), fetches_(std::move(fetches)), passes_(passes) {}

  std::shared_ptr<Program> program();
  Differentiated& differentiated();
  std::vector<Tensor> call_watched(std::span<const Tensor* const> feeds, const Draws* draws, Interceptor& interceptor);
  std::vector<Feed> feed_specs() const;
  std::shared_ptr<Program> compile(std::span<const ValueId> fetches);

  const std::shared_ptr<GraphState> graph_;
  const std::vector<ValueId> feeds_, fetches_;
  const Passes passes_;
  std::mutex mutex_;
  std::shared_ptr<Program> program_;  // Guarded by mutex_ while it is made, as the others.
  std::vector<Variable> variables_;   // Of program_.
  std::unique_ptr<Differentiated> differentiated_;
};

}  // namespace plimsoll
