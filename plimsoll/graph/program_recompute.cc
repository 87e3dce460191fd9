#include "plimsoll/graph/program_recompute.h"

#include <algorithm>

#include "plimsoll/graph/program_passes.h"

namespace plimsoll {
namespace {

using Place = StepList::Place;

bool may_repeat(const StepList& list, const StepList::Step& step) {
  if (list.graph->node(step.node).kind != NodeKind::kOp) return false;
  const OpFacts facts = step.op->facts();
  if (!facts.is_pure) return false;
  // Graphs set where a random op begins, in a copy; one that cannot be set might draw something else.
  return !facts.is_random || const_cast<Op*>(step.op)->draw() != nullptr;
}

// Values of a step program are roots, in the order they are written; a variable has one more for each change.
class StepProgramMaker {
 public:
  StepProgramMaker(const StepList& list, const Passes& passes) : list_(list), shared_(list) {
    find_lifetimes(shared_);
    place_results(shared_);
    taken_.assign(list.steps.size(), StepList::kNone);
    if (passes.in_place) taken_ = share_bytes(shared_);
    number_.assign(list.roots.size(), StepProgram::kNone);
  }

  StepProgram run() {
    const std::vector<bool> backward = backward_nodes(*list_.graph);
    for (std::size_t i = 0; i < list_.steps.size(); ++i) {
      const StepList::Step& from = list_.steps[i];
      StepProgram::Step step;
      for (const std::uint32_t input : from.in) add_read(step, list_.values[input].root);
      for (const std::uint32_t output : from.out) add_write(step, list_.values[output].root, taken_[i]);
      step.scratch_bytes = buffer_bytes(from.scratch_bytes);
      step.cost = list_.cost_of(from);
      step.may_repeat = may_repeat(list_, from);
      step.is_gradient = backward[from.node];
      program_.steps.push_back(std::move(step));
    }
    for (const std::uint32_t fetch : list_.fetches)
      if (fetch != StepList::kNone && number_[list_.values[fetch].root] != StepProgram::kNone)
        program_.values[static_cast<std::size_t>(number_[list_.values[fetch].root])].is_kept = true;
    return std::move(program_);
  }

 private:
  int add_value(std::uint32_t root, bool is_given) {
    const StepList::Root& lies = shared_.roots[shared_.find(root)];
    const std::size_t bytes = lies.place == Place::kPlanned ? buffer_bytes(list_.roots[root].bytes) : 0;
    program_.values.push_back({.bytes = bytes, .is_given = is_given});
    number_[root] = static_cast<int>(program_.values.size() - 1);
    return number_[root];
  }

  void add_read(StepProgram::Step& step, std::uint32_t root) {
    const int value = number_[root] == StepProgram::kNone ? add_value(root, true) : number_[root];
    if (std::find(step.reads.begin(), step.reads.end(), value) == step.reads.end()) step.reads.push_back(value);
  }

  void add_write(StepProgram::Step& step, std::uint32_t root, std::uint32_t taken) {
    int before = StepProgram::kNone;
    if (list_.roots[root].place == Place::kVariable)
      before = number_[root] == StepProgram::kNone ? add_value(root, true) : number_[root];
    else if (taken != StepList::kNone)
      before = number_[taken];
    step.writes.push_back(add_value(root, false));
    step.takes_over.push_back(before);
  }

  const StepList& list_;
  StepList shared_;                   // With what shares bytes in the natural order.
  std::vector<std::uint32_t> taken_;  // By step: the root whose bytes it takes.
  std::vector<int> number_;           // By root: the value that is there now.
  StepProgram program_;
};

// Follows a schedule and knows which values are there.
class Repeater {
 public:
  Repeater(const StepList& list, const StepProgram& program)
      : from_(list), program_(program), list_(list), now_(list.roots.size()), is_there_(program.values.size(), false) {
    list_.steps.clear();
    for (std::uint32_t root = 0; root < now_.size(); ++root) now_[root] = root;
    find_ends();
  }

  StepList run(const Schedule& schedule) {
    for (const Schedule::Entry& entry : schedule.entries) {
      const auto number = static_cast<std::size_t>(entry.number);
      if (entry.action == Action::kRun || entry.action == Action::kAgain)
        add(number, entry.action == Action::kAgain);
      else if (entry.action == Action::kDrop)
        is_there_[number] = false;
    }
    return std::move(list_);
  }

 private:
  // By step: the values that nobody reads after it, unless they are kept.
  void find_ends() {
    std::vector<std::size_t> last(program_.values.size(), SIZE_MAX);
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      for (const int value : program_.steps[step].reads) last[static_cast<std::size_t>(value)] = step;
      for (const int value : program_.steps[step].writes) last[static_cast<std::size_t>(value)] = step;
    }
    ends_.resize(program_.steps.size());
    for (std::size_t value = 0; value < last.size(); ++value)
      if (last[value] != SIZE_MAX && !program_.values[value].is_kept) ends_[last[value]].push_back(value);
  }

  // The value where its root is now.
  std::uint32_t value_now(std::uint32_t value) {
    const std::uint32_t root = now_[from_.values[value].root];
    if (root == from_.values[value].root) return value;
    list_.values.push_back(from_.values[value]);
    list_.values.back().root = root;
    return static_cast<std::uint32_t>(list_.values.size() - 1);
  }

  void add(std::size_t number, bool again) {
    const StepProgram::Step& planned = program_.steps[number];
    StepList::Step step = from_.steps[number];
    for (std::uint32_t& input : step.in) input = value_now(input);
    for (std::size_t k = 0; k < step.out.size(); ++k) {
      const auto made = static_cast<std::size_t>(planned.writes[k]);
      const std::uint32_t root = from_.values[step.out[k]].root;
      if (again && !is_there_[made]) {
        now_[root] = static_cast<std::uint32_t>(list_.roots.size());
        list_.roots.push_back(from_.roots[root]);
      }
      if (planned.takes_over[k] != StepProgram::kNone && !is_there_[made])
        is_there_[static_cast<std::size_t>(planned.takes_over[k])] = false;
      is_there_[made] = true;
      step.out[k] = value_now(step.out[k]);
    }
    if (again) {
      step.is_again = true;
      step.checks = false;  // Its operands have passed; to refuse them now would be after a change.
    } else {
      for (const std::size_t value : ends_[number]) is_there_[value] = false;
    }
    list_.steps.push_back(std::move(step));
  }

  const StepList& from_;
  const StepProgram& program_;
  StepList list_;
  std::vector<std::uint32_t> now_;  // By root: its latest copy.
  std::vector<bool> is_there_;      // By value of the step program.
  std::vector<std::vector<std::size_t>> ends_;
};

}  // namespace

StepProgram step_program_of(const StepList& list, const Passes& passes) { return StepProgramMaker(list, passes).run(); }

StepList with_repeats(const StepList& list, const StepProgram& program, const Schedule& schedule) {
  return Repeater(list, program).run(schedule);
}

}  // namespace plimsoll
