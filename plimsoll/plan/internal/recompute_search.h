// RecomputeSearch: many rehearsals with different policies; the cheapest schedule is kept.
#pragma once

#include <optional>

#include "plimsoll/plan/internal/rehearsal.h"

namespace plimsoll::internal {

// What searches within other limits of the same program have found out.
struct SearchMemory {
  std::vector<EvictionPolicy> winners;  // The latest first; tried before others.
  std::size_t tried = 0;                // Of the portfolio: the next search continues there.
};

class RecomputeSearch {
 public:
  RecomputeSearch(const StepFacts& facts, std::size_t limit, const RecomputeOptions& options, SearchMemory& memory);

  StepSchedule run();

 private:
  // The extra cost of a rehearsal, if it completes below `most`; the best schedule so far is kept.
  std::optional<std::uint64_t> attempt(const EvictionPolicy& policy, std::uint64_t most);
  void attempt(const EvictionPolicy& policy) { attempt(policy, most_extra_cost()); }
  std::uint64_t most_extra_cost() const;
  bool is_done() const { return work_ >= options_.work || (best_.completed && best_.extra_cost() <= bound_); }
  bool spills() const { return options_.spill_bytes_per_cost > 0; }
  struct Choice {
    Price price;
    int rest_quarters;
    double cap;  // Of the program's cost.
    bool in_order = true;
    double discount = 1;
    int segments = 0;  // Values across cuts into this many are expensive; 0: none are.
  };
  std::vector<Choice> leaders() const;
  std::vector<Choice> portfolio() const;
  EvictionPolicy policy_of(const Choice& choice) const;
  std::size_t try_portfolio(std::size_t first);  // How many of it were tried.
  void try_expensive(std::size_t first);
  void try_neighbourhood();
  std::vector<double> segment_weights(int segments) const;

  const StepFacts& facts_;
  const std::size_t limit_;
  const RecomputeOptions& options_;
  SearchMemory& memory_;
  const std::uint64_t bound_;
  double most_cost_factor_;
  std::uint64_t work_ = 0;
  StepSchedule best_;
  EvictionPolicy best_policy_;
};

}  // namespace plimsoll::internal
