// Body: a branch, or the condition or body of a loop: a graph inside of an op, with plans for the sizes it is given.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/program.h"

namespace plimsoll {

class Body {
 public:
  // Calls `f` with `arguments` symbolic tensors of these specs, as part of a graph inside of `outer`.
  using Traced = FunctionRef<std::vector<Tensor>(std::span<const Tensor> arguments)>;
  static std::shared_ptr<Body> trace(const std::shared_ptr<GraphState>& outer, std::span<const TensorSpec> arguments,
                                     std::vector<Tensor>& captured, Traced f);

  std::size_t num_arguments() const noexcept { return feeds_.size(); }  // Captured ones come last.
  std::size_t num_results() const noexcept { return fetches_.size(); }
  const TensorSpec& result_spec(std::size_t result) const { return graph_->output(fetches_[result]).spec; }

  // The plan for arguments of these sizes; made if need be.
  Program& plan(std::span<const SpecRef> arguments);
  Program* find(std::span<const ConstTensorView> arguments) noexcept;  // One that was made.

  // The same operations, done or traced again one by one.
  std::vector<Tensor> replay(std::span<const Tensor> arguments) const;

 private:
  Body() = default;
  struct Planned {
    std::vector<TensorSpec> arguments;
    std::unique_ptr<Program> program;
  };

  std::shared_ptr<GraphState> graph_;
  std::vector<ValueId> feeds_, fetches_;
  std::mutex mutex_;
  std::vector<Planned> plans_;  // Guarded by mutex_.
};

}  // namespace plimsoll
