// RecomputeSearch: many rehearsals with different policies; the cheapest schedule is kept.
#pragma once

#include <optional>

#include "plimsoll/plan/internal/rehearsal.h"

namespace plimsoll::plan_internal {

class RecomputeSearch {
 public:
  RecomputeSearch(const StepFacts& facts, std::size_t limit, const RecomputeOptions& options);

  Schedule run();

 private:
  // The extra cost of a rehearsal, if it completes below `most`; the best schedule so far is kept.
  std::optional<std::uint64_t> attempt(const EvictionPolicy& policy, std::uint64_t most);
  void attempt(const EvictionPolicy& policy) { attempt(policy, most_extra_cost()); }
  std::uint64_t most_extra_cost() const;
  bool is_done() const { return work_ >= options_.work || (best_.completed && best_.extra_cost() <= bound_); }
  bool spills() const { return options_.spill_bytes_per_cost > 0; }
  void try_portfolio();
  void try_segments();
  void try_neighbourhood();
  std::vector<double> segment_weights(int segments) const;

  const StepFacts& facts_;
  const std::size_t limit_;
  const RecomputeOptions& options_;
  const std::uint64_t bound_;
  double most_cost_factor_;
  std::uint64_t work_ = 0;
  Schedule best_;
  EvictionPolicy best_policy_;
};

}  // namespace plimsoll::plan_internal
