// ProgramFamily: the plans of one program, from the natural one to the leanest that was found.
//
//   ProgramFamily family(rewritten, passes, inside, natural);
//   family.points();                 // bytes and predicted slowdown, natural first
//   family.variant(2).run(call);     // its tables are made when it is first asked for
//
// The leaner ones repeat steps, or store and load values (program_recompute.h). Which there are depends on the program
// alone, not on clocks, threads or what ran before. Thread safety: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/graph/program_passes.h"
#include "plimsoll/graph/program_variant.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

class ProgramFamily {
 public:
  // With kSpill values may be stored, too; changes of variables come after everything that is loaded. With
  // kSpillVariables those that may be are in the file between their uses, and what a point takes includes them. With a
  // level of thrift ops work in less memory themselves (ops/thrifty_op.h).
  ProgramFamily(const Rewritten& rewritten, const Passes& passes, bool inside, const ProgramTables& natural,
                Eviction eviction = Eviction::kRecompute, double spill_bytes_per_cost = 0, int thrift = 0);
  ~ProgramFamily();

  const std::vector<BudgetPoint>& points() const noexcept { return points_; }
  ProgramVariant& variant(std::size_t point);                  // Requires 0 < point < points().size().
  double repeated_fraction(std::size_t point) const noexcept;  // Of the cost of a run, steps that run again.
  int levels_of_thrift() const { return internal::levels_of_thrift(list_); }
  std::size_t num_steps() const noexcept { return list_.steps.size(); }
  bool is_too_long() const noexcept;  // To look for leaner plans: there is the natural one only.
  std::size_t floor_bytes() const noexcept { return floor_bytes_; }
  // Of memory, what parked variables take when they are not; and which they are, among the program's.
  std::size_t parked_bytes() const noexcept { return parked_bytes_; }
  const std::vector<std::uint32_t>& parked() const noexcept { return parked_; }
  const std::string& floor_step() const noexcept { return floor_step_; }
  struct Actions {  // Of one run.
    std::size_t repeats = 0, drops = 0, stores = 0, loads = 0, stored_bytes = 0;
  };
  Actions actions(std::size_t point) const noexcept;
  std::size_t bytes() const noexcept;  // Of its bookkeeping.
  void release_slots() noexcept;

 private:
  struct Member {
    StepSchedule schedule;
    BufferPlaces places;
    std::unique_ptr<ProgramVariant> variant;  // Made when it is first needed. Guarded by mutex_.
  };
  class Search;

  StepList repeated(const StepSchedule& schedule) const;  // As far as lifetimes and sharing.
  StepList thrifty(StepList list, int thrift);
  void find_parked();

  const Passes passes_;
  const bool spills_;
  const double spill_bytes_per_cost_;
  double base_factor_ = 1;  // What thrift alone costs.
  const StepList list_;
  const StepProgram program_;
  std::vector<BudgetPoint> points_;
  std::vector<Member> members_;  // Of the points after the first.
  std::size_t floor_bytes_ = 0;
  std::size_t parked_bytes_ = 0;
  std::vector<std::uint32_t> parked_;
  std::string floor_step_;
  mutable std::mutex mutex_;
};

}  // namespace plimsoll::internal
