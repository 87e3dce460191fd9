// DistributedLayout: what the processes of a job exchange for a step, which part of it each one updates, and the memory
// for that.
//
//   const DistributedLayout layout(plan, clipping, {.ranks = 4, .rank = 1, .shards = true});
//   layout.beside(plan, SliceTree(32, 4), optimizer).gradients;      // Bytes in addition to the plan of a slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plimsoll/distributed/slice_tree.h"
#include "plimsoll/distributed/tensor_exchange.h"
#include "plimsoll/model/training/step.h"
#include "plimsoll/model/training/step_budget.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

class StepPlan;

struct RankOfJob {
  int ranks = 1, rank = 0;
  bool shards = false;             // The optimizer's state,
  bool shards_parameters = false;  // and the parameters.
};

class DistributedLayout {
 public:
  // For a plan of gradients that knows what it changes.
  DistributedLayout(const StepPlan& plan, const GradientClipping& clipping, const RankOfJob& rank);

  const std::vector<Variable>& changed() const noexcept { return changed_; }  // Parameters, then statistics.
  std::size_t num_parameters() const noexcept { return num_parameters_; }
  const distributed::FlatSpace& space() const noexcept { return space_; }
  const std::vector<Optimizer::Stretch>& stretches() const noexcept { return stretches_; }  // This rank updates these,
  std::size_t part_of(std::size_t stretch) const { return stretch_parts_.at(stretch); }  // of this part of the space.
  // By variable of the plan: the part that is spread over the ranks; kNotSpread if it is not.
  static constexpr std::size_t kNotSpread = SIZE_MAX;
  std::vector<std::size_t> spread_parts(const StepPlan& plan) const;
  std::size_t window_bytes(const StepPlan& plan) const;  // For those that one operation reads.
  // Spread parameters cannot have any: throws Unsupported.
  static void require_no_constraints(const StepPlan& plan, const char* where);
  // Calls f(part, first byte in it, bytes) for what this rank updates.
  template <class F>
  void visit_updated(F&& f) const {
    if (rank_.shards)
      space_.visit_own(rank_.rank, f);
    else
      space_.visit(0, space_.end(), f);
  }
  // The memory a rank needs while it computes a slice, besides the slice's plan: sums that wait, results, buckets,
  // state.
  BesideStep beside(const StepPlan& plan, const distributed::SliceTree& tree, const Optimizer& optimizer) const;

 private:
  std::vector<Variable> changed_;
  std::size_t num_parameters_;
  RankOfJob rank_;
  distributed::FlatSpace space_;
  std::vector<Optimizer::Stretch> stretches_;
  std::vector<std::size_t> stretch_parts_;
};

}  // namespace plimsoll::internal
