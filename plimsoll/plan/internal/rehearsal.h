// Rehearsal: one simulated run of a step program within a limit. When something does not fit, it evicts the value that
// is cheapest to recover, for its bytes and the time until it is read.
//
//   Rehearsal rehearsal(facts, limit, {.price = Price::kNeighbours, .rest_quarters = 2});
//   if (rehearsal.run()) rehearsal.schedule();
// A value is recovered just before it is read, through whatever must run again for it: a stack of steps that wait for
// their operands, never recursion. The operands of waiting steps are pinned; when nothing else is left, they lose them
// and recover them later.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/plan/internal/step_facts.h"
#include "plimsoll/plan/internal/victims.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

class Rehearsal {
 public:
  Rehearsal(const StepFacts& facts, std::size_t limit, const EvictionPolicy& policy);

  // False when a step did not fit, or the cost passed what the policy allows, or the work did.
  bool run();

  const StepSchedule& schedule() const { return schedule_; }
  std::uint64_t work() const { return victims_.work; }
  int failed_at() const { return at_; }  // The step that did not fit.

 private:
  struct Frame {
    int step;
    int target;         // The value it runs for; kNone for the step that runs for the first time.
    std::size_t flags;  // Begin of its flags in has_: which operands it has pinned.
  };

  bool run_step(int step);
  void open(int step, int target);
  void close();
  bool bring_operands();       // Of the top frame; what must run for them runs depth first.
  bool bring_in_order();       // The same, in the order of the program.
  void find_needed(int step);  // Fills needed_ with the steps that must run for its operands, in order.
  int pin_what_is_there();     // For the top frame; gives an operand that is missing, or kNone.
  bool execute(int step, int target);
  std::size_t fresh_bytes(int step) const;
  bool load(int value);
  bool make_room(std::size_t bytes);
  int next_at() const { return frames_.size() == 1 ? at_ + 1 : at_; }  // The first step that reads what is left now.
  int takeable(int step);  // An operand whose bytes the first result may take, if nobody else holds it; or kNone.
  bool make_room_or_take(int step, std::size_t& need, int& taken);
  void give_up(int value);  // An operand of the top frame, whose bytes have been taken.
  int take_from_waiting();  // An operand of a step below the top, unpinned; or kNone.
  void evict(int value);
  void drop(int value);
  void drop_ghosts();
  bool is_dear() const { return schedule_.extra_cost() > policy_.most_extra_cost || victims_.work > policy_.most_work; }
  void add(Action action, int number) { schedule_.entries.push_back({action, number}); }

  const StepFacts& facts_;
  const EvictionPolicy policy_;
  const std::size_t limit_;
  Victims victims_;
  std::vector<Frame> frames_;
  std::vector<char> has_;
  std::vector<int> needed_, needed_for_, open_values_;  // needed_for_: per step, the step it was last needed for.
  std::vector<int> ghosts_;                             // Dead values that were recomputed on the way.
  std::size_t use_ = 0;
  int at_ = 0;
  StepSchedule schedule_;
};

}  // namespace plimsoll::internal
