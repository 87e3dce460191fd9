// Recomputation in a program that is being built: what the planner sees of a list of steps, and what its schedules make
// of the list.
//
//   const StepList list = list_fused_steps(rewritten, passes, inside);
//   const StepProgram program = step_program_of(list, passes);       // one step for each, sizes as they are placed
//   const StepSchedule schedule = recompute(program, limit);
//   StepList leaner = with_repeats(list, program, schedule);         // then lifetimes, sharing and places as always
//
// Never repeated: steps that change variables, have effects or run other programs (cond, while_loop), and steps that
// read a variable once it has changed. Random steps are: they draw by their ticket, so again the same.
#pragma once

#include "plimsoll/graph/passes.h"
#include "plimsoll/graph/step_list.h"
#include "plimsoll/plan/recompute.h"

namespace plimsoll::internal {

// Bytes of values are those in the extent, rounded as buffers are; what lies elsewhere (feeds, constants, variables
// that are not parked, results) takes none. A variable that changes is a chain of values.
StepProgram step_program_of(const StepList& list, const Passes& passes);

// Lets the planner store values, large ones only, as long as nothing in memory has changed: what is used by changes of
// variables there, and after the first of them, stays, so that every transfer is over before. Parked variables are in
// the file at the start: they are loaded for their readers, and what their last change makes is stored, in another
// slot, before the first change in memory. Call it with a list whose changes are late.
void allow_spilling(const StepList& list, StepProgram& program);

// The list with the steps that the schedule repeats. Their outputs are new values, unless the old ones are still there:
// those are written once more, with the same bytes. What is loaded is a new root. Requires step_program_of(list) and a
// schedule of it.
StepList with_repeats(const StepList& list, const StepProgram& program, const StepSchedule& schedule);

}  // namespace plimsoll::internal
