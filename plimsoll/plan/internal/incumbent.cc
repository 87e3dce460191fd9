#include "plimsoll/plan/internal/incumbent.h"

#include <algorithm>

#include "plimsoll/plan/internal/lower_bound.h"

namespace plimsoll::internal {

Incumbent::Incumbent(const Instance& instance, const Constraints& constraints, const Deadline& deadline,
                     std::chrono::steady_clock::time_point start)
    : instance_(instance),
      constraints_(constraints),
      deadline_(deadline),
      start_(start),
      bound_(live_bound(instance)) {}

bool Incumbent::offer(std::vector<Units> offsets) {
  const std::size_t peak = peak_bytes(instance_, offsets);
  if (!offsets_.empty() && peak >= peak_) return false;
  if (offsets_.empty()) first_plan_seconds_ = seconds();
  offsets_ = std::move(offsets);
  peak_ = peak;
  return true;
}

void Incumbent::raise_bound(std::size_t bytes) { bound_ = std::max(bound_, bytes); }

bool Incumbent::settled() const {
  if (!has_plan()) return false;
  return peak_ <= bound_ || (has_capacity() && (peak_ <= constraints_.capacity || bound_ > constraints_.capacity));
}

std::size_t Incumbent::largest_useful_peak() const {
  return std::min(constraints_.capacity, peak_ > 0 ? peak_ - 1 : 0);
}

std::chrono::steady_clock::time_point Incumbent::time_limit() const {
  constexpr double kLongest = 1e9;  // Seconds; more would not fit a clock.
  return start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                      std::chrono::duration<double>(std::clamp(deadline_.seconds, 0.0, kLongest)));
}

double Incumbent::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Plan Incumbent::result() const {
  Plan plan;
  plan.offsets = buffer_offsets(instance_, offsets_);
  plan.peak = peak_;
  plan.lower_bound = bound_;
  if (peak_ <= constraints_.capacity)
    plan.proof = peak_ == bound_ ? Proof::kOptimal : Proof::kFeasible;
  else
    plan.proof = bound_ > constraints_.capacity ? Proof::kInfeasible : Proof::kUnknown;
  plan.nodes = nodes_;
  plan.seconds = seconds();
  plan.first_plan_seconds = first_plan_seconds_;
  return plan;
}

}  // namespace plimsoll::internal
