// SpreadParameters: the parameters of a model, of which each process of a job keeps a part during the steps of an
// epoch.
//
//   SpreadParameters parameters(job, layout);
//   parameters.take(window_bytes);                   // Memory. May throw; so agree before the next call.
//   parameters.spread();                             // Now no process has all of them,
//   parameters.run(plan, [&](auto& borrowed) {..});  // and a step fetches those that its operations read.
//   parameters.read_all();                           // This process has all of them; agree before the next call.
//   parameters.close();                              // They are as they were at first.
//
// While they are spread, a variable has no bytes. Whoever reads it fetches them from the other processes, which answer
// between operations and whenever they wait for messages; the bytes then stay here until put_back(). A variable that
// is still elsewhere when this object ends, because a process was lost, throws FailedPrecondition when it is read.
// Thread safety: one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/distributed/shard_store.h"
#include "plimsoll/model/training/distributed_layout.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class SpreadParameters {
 public:
  // Borrows both.
  SpreadParameters(distributed::Job& job, const DistributedLayout& layout);
  ~SpreadParameters();
  SpreadParameters(const SpreadParameters&) = delete;
  SpreadParameters& operator=(const SpreadParameters&) = delete;

  void take(std::size_t window_bytes);  // For this rank's part, and for what an operation reads.
  void spread();                        // In all ranks, after take().
  bool are_spread() const noexcept { return store_ && store_->is_open(); }
  // Frees what has been read since, with what was assigned to it.
  void put_back();
  // Calls f with what a program needs to run while they are spread.
  void run(const StepPlan& plan, FunctionRef<void(const BorrowedVariables&)> f);
  // The elements of each stretch of the layout, to change between begin_change() and end_change().
  std::vector<TensorView> own() const;
  void begin_change() { store_->begin_change(); }
  void end_change() { store_->end_change(); }
  void read_all();          // Throws OutOfMemory; some have then been read.
  void close();             // In all ranks.
  void give_up() noexcept;  // After an error, in all ranks: both, as far as possible.

 private:
  struct Link {  // From variables without bytes.
    distributed::ShardStore* store = nullptr;
  };
  Tensor placeholder(std::size_t part) const;

  distributed::Job& job_;
  const DistributedLayout& layout_;
  Tensor shards_, window_;
  std::unique_ptr<distributed::ShardStore> store_;
  std::shared_ptr<Link> link_ = std::make_shared<Link>();
};

}  // namespace plimsoll::internal
