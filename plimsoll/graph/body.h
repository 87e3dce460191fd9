// Body: a branch, or the condition or body of a loop: a graph inside an op, with plans for the sizes it meets.
//
// It keeps a few recently used plans; an op that is part of a program holds its own (BoundBody).
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/graph/program.h"

namespace plimsoll::internal {

class Body {
 public:
  // Calls `f` with `arguments` symbolic tensors of these specs, as part of a graph inside `outer`.
  using Traced = FunctionRef<std::vector<Tensor>(std::span<const Tensor> arguments)>;
  // These and the results are on `device`; values may be captured only from there.
  static std::shared_ptr<Body> trace(const std::shared_ptr<GraphState>& outer, Device& device,
                                     std::span<const TensorSpec> arguments, std::vector<Tensor>& captured, Traced f);

  // The same for a branch, which may change variables, in two steps: open() traces, close() returns what it captured.
  static std::shared_ptr<Body> open_branch(const std::shared_ptr<GraphState>& outer, Device& device, Traced f);
  const std::vector<GraphState::Changed>& changed() const noexcept { return graph_->changed(); }
  void add_value_of(const GraphState::AnyVariable& variable);  // Adds one more result at the end of the branch.
  std::vector<Tensor> close();

  std::size_t num_arguments() const noexcept { return feeds_.size(); }  // Captured ones come last.
  std::size_t num_results() const noexcept { return fetches_.size(); }
  const TensorSpec& result_spec(std::size_t result) const { return graph_->output(fetches_[result]).spec; }

  struct Planned {
    std::vector<TensorSpec> arguments;
    std::unique_ptr<Program> program;
    bool is_for(std::span<const ConstTensorView> given) const noexcept;
  };
  // The plan for arguments of these sizes; made if necessary.
  std::shared_ptr<Planned> plan(std::span<const SpecRef> arguments);

  // The same operations, run or traced again one by one.
  std::vector<Tensor> replay(std::span<const Tensor> arguments) const;

 private:
  Body() = default;
  void add_result(const Tensor& result);
  void trace_open(std::span<const TensorSpec> arguments, Traced f);

  std::shared_ptr<GraphState> graph_;
  Device* device_ = nullptr;
  std::vector<ValueId> feeds_, fetches_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Planned>> plans_;  // Most recently used first. Guarded by mutex_.
};

// A body as part of an op, with the plan for the sizes that the op saw last.
class BoundBody {
 public:
  explicit BoundBody(std::shared_ptr<Body> body) : body_(std::move(body)) {}
  BoundBody(const BoundBody& other) : body_(other.body_), bound_(other.bound()) {}
  BoundBody& operator=(const BoundBody&) = delete;

  const Body& operator*() const noexcept { return *body_; }
  const Body* operator->() const noexcept { return body_.get(); }
  const std::shared_ptr<Body>& shared() const noexcept { return body_; }

  // The plan for these sizes; remembered for run().
  Program& plan(std::span<const SpecRef> arguments) const;
  std::size_t extent_bytes() const { return bound()->program->extent_bytes(); }  // Of the remembered plan.
  // An error is kept in pending_error(), for the enclosing program.
  void run(std::span<const ConstTensorView> feeds, std::span<const TensorView> results,
           std::byte* extent) const noexcept;

 private:
  std::shared_ptr<Body::Planned> bound() const {
    const std::lock_guard lock(mutex_);
    return bound_;
  }

  std::shared_ptr<Body> body_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Body::Planned> bound_;  // Guarded by mutex_.
};

// The gradients of sum(results * upstream) with respect to the floating `arguments`; zeros where there are none.
std::vector<Tensor> replayed_gradients(const Body& body, const std::vector<Tensor>& arguments,
                                       const std::vector<Tensor>& upstream);

}  // namespace plimsoll::internal
