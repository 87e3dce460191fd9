// Incumbent: the best plan so far, the best bound so far, and whether that settles the question.
//
//   Incumbent best(instance, constraints, deadline, start);
//   best.offer(skyline_descent(instance, order));
//   if (best.done()) ...                           // at the bound, within the capacity, or out of time
//
// Thread safety: used by one thread at a time; expired() may be called from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/plan/internal/instance.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

class Incumbent {
 public:
  Incumbent(const Instance& instance, const Constraints& constraints, const Deadline& deadline,
            std::chrono::steady_clock::time_point start);

  // Keeps `offsets` if they beat what there is. Returns whether they did.
  bool offer(std::vector<Units> offsets);
  void raise_bound(std::size_t bytes);
  void spend(std::uint64_t nodes) { nodes_ += nodes; }

  bool has_capacity() const { return constraints_.capacity != Constraints().capacity; }
  bool has_plan() const { return !offsets_.empty() || instance_.items.empty(); }
  std::span<const Units> offsets() const { return offsets_; }
  std::size_t peak() const { return peak_; }
  std::size_t bound() const { return bound_; }

  // Nothing is left to find: the plan is optimal, fits the capacity, or the bound proves that none does.
  bool settled() const;
  bool expired() const { return seconds() >= deadline_.seconds; }
  bool done() const { return settled() || nodes_ >= deadline_.nodes || expired(); }

  // The peak that a search should beat next: within the capacity if there is one, below the best plan otherwise.
  std::size_t largest_useful_peak() const;
  std::uint64_t nodes_left() const { return nodes_ >= deadline_.nodes ? 0 : deadline_.nodes - nodes_; }
  const Deadline& deadline() const { return deadline_; }
  double seconds() const;
  std::chrono::steady_clock::time_point time_limit() const;
  Plan result() const;

 private:
  const Instance& instance_;
  const Constraints constraints_;
  const Deadline deadline_;
  const std::chrono::steady_clock::time_point start_;
  std::vector<Units> offsets_;
  std::size_t peak_ = 0;
  std::size_t bound_ = 0;
  std::uint64_t nodes_ = 0;
  double first_plan_seconds_ = 0;
};

}  // namespace plimsoll::internal
