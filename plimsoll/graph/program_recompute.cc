#include "plimsoll/graph/program_recompute.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/graph/program_passes.h"

namespace plimsoll::internal {
namespace {

using Place = StepList::Place;

constexpr std::size_t kSmallestShare = 1024;  // Of the natural peak: smaller values are not worth a transfer.

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
    in_place_ = passes.in_place;
    if (passes.in_place) taken_ = share_bytes(shared_);
    number_.assign(list.roots.size(), StepProgram::kNone);
  }

  StepProgram run() {
    const std::vector<bool> backward = backward_nodes(*list_.graph);
    for (std::size_t i = 0; i < list_.steps.size(); ++i) {
      const StepList::Step& from = list_.steps[i];
      StepProgram::Step step;
      for (const std::uint32_t input : from.in) add_read(step, list_.values[input].root);
      for (const std::uint32_t output : from.out)  // The first may take over an operand's bytes.
        add_write(step, list_.values[output].root, step.writes.empty() ? taken_[i] : StepList::kNone);
      add_may_take(step, from);
      step.scratch_bytes = buffer_bytes(from.scratch_bytes);
      step.cost = list_.cost_of(from);
      step.may_repeat = may_repeat(list_, from);
      step.is_gradient = backward[from.node];
      program_.steps.push_back(std::move(step));
    }
    for (const std::uint32_t fetch : list_.fetches)
      if (fetch != StepList::kNone && number_[list_.values[fetch].root] != StepProgram::kNone)
        program_.values[static_cast<std::size_t>(number_[list_.values[fetch].root])].is_kept = true;
    keep_costs_small();
    return std::move(program_);
  }

 private:
  // The planner multiplies sums of costs; only their ratios matter.
  void keep_costs_small() {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
    for (int shift = 0;; ++shift) {
      std::uint64_t sum = 0;
      for (const StepProgram::Step& step : program_.steps) sum += std::min(step.cost >> shift, kMost);
      if (sum < kMost || shift == 63) {
        for (StepProgram::Step& step : program_.steps) step.cost >>= shift;
        return;
      }
    }
  }

  int add_value(std::uint32_t root, bool is_given) {
    const StepList::Root& lies = shared_.roots[shared_.find(root)];
    std::size_t bytes = lies.place == Place::kPlanned ? buffer_bytes(list_.roots[root].bytes) : 0;
    if (lies.is_parked) bytes = transferred_bytes(list_.roots[root].bytes);
    program_.values.push_back({.bytes = bytes, .is_given = is_given});
    number_[root] = static_cast<int>(program_.values.size() - 1);
    return number_[root];
  }

  void add_read(StepProgram::Step& step, std::uint32_t root) {
    const int value = number_[root] == StepProgram::kNone ? add_value(root, true) : number_[root];
    if (std::find(step.reads.begin(), step.reads.end(), value) == step.reads.end()) step.reads.push_back(value);
  }

  // What share_bytes() will do when a schedule gives these operands up.
  void add_may_take(StepProgram::Step& step, const StepList::Step& from) const {
    const std::uint32_t overwrites = from.op->facts().overwrites;
    if (!in_place_ || overwrites == 0 || from.out.empty() || step.takes_over[0] != StepProgram::kNone) return;
    const std::size_t bytes = program_.values[static_cast<std::size_t>(step.writes[0])].bytes;
    const StepList::Root& made = list_.roots[list_.values[from.out[0]].root];
    for (std::size_t i = 0; i < from.in.size(); ++i) {
      const StepList::Value& value = list_.values[from.in[i]];
      const StepList::Root& root = list_.roots[value.root];
      if ((overwrites & slot(i)) == 0 || bytes == 0 || root.place != Place::kPlanned) continue;
      if (value.offset != 0 || root.bytes != made.bytes || root.device != made.device) continue;
      if (program_.values[static_cast<std::size_t>(number_[value.root])].bytes != bytes) continue;
      const auto is_same = [&](std::uint32_t other) {
        return list_.values[other].root != value.root ||
               (list_.values[other].offset == 0 && list_.spec(other).bytes() == root.bytes);
      };
      if (std::all_of(from.in.begin(), from.in.end(), is_same)) step.may_take.push_back(number_[value.root]);
    }
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
  bool in_place_ = false;
  std::vector<int> number_;  // By root: the value that is there now.
  StepProgram program_;
};

// By value of the program: its root in the list; kNone for those that no step touches.
std::vector<std::uint32_t> roots_of_values(const StepList& list, const StepProgram& program) {
  std::vector<std::uint32_t> roots(program.values.size(), StepList::kNone);
  const auto set = [&](int value, std::uint32_t root) {
    if (value != StepProgram::kNone) roots[static_cast<std::size_t>(value)] = root;
  };
  std::vector<std::uint32_t> read;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const StepProgram::Step& step = program.steps[i];
    read.clear();  // In the order of the values that are read.
    for (const std::uint32_t input : list.steps[i].in) {
      const std::uint32_t root = list.values[input].root;
      if (std::find(read.begin(), read.end(), root) == read.end()) read.push_back(root);
    }
    for (std::size_t k = 0; k < step.reads.size(); ++k) set(step.reads[k], read[k]);
    for (std::size_t k = 0; k < step.writes.size(); ++k) {
      const std::uint32_t root = list.values[list.steps[i].out[k]].root;
      if (list.roots[root].place == Place::kVariable) set(step.takes_over[k], root);
      set(step.writes[k], root);
    }
  }
  return roots;
}

// Follows a schedule and knows which values are there.
class Repeater {
 public:
  Repeater(const StepList& list, const StepProgram& program)
      : from_(list),
        program_(program),
        list_(list.without_steps()),
        now_(list.roots.size()),
        copies_(list.values.size()),
        is_there_(program.values.size(), false),
        root_of_value_(roots_of_values(list, program)) {
    for (StepList::Root& root : list_.roots)
      if (root.is_parked) root.place = Place::kNothing;  // Its bytes come with each load.
    slot_.assign(program.values.size(), StepList::kNone);
    stored_.assign(program.values.size(), StepList::kNone);
    std::iota(now_.begin(), now_.end(), 0u);
    std::iota(copies_.begin(), copies_.end(), 0u);
    find_ends();
  }

  StepList run(const StepSchedule& schedule) {
    num_slots_ = static_cast<std::uint32_t>(list_.variables.size());  // Those of parked variables come first.
    for (const StepSchedule::Entry& entry : schedule.entries) {
      const auto number = static_cast<std::size_t>(entry.number);
      switch (entry.action) {
        case Action::kRun:
          add(number, false);
          break;
        case Action::kAgain:
          add(number, true);
          break;
        case Action::kTake:  // Sharing finds it: its last reader may overwrite it.
        case Action::kDrop:
          drop(number);
          break;
        case Action::kStore:
          store(number);
          break;
        case Action::kLoad:
          load(number);
          break;
      }
    }
    end_parked_stores();
    forget_unused_loads();
    // What is never loaded need not be stored.
    std::vector<bool> is_loaded(num_slots_, false);
    std::fill_n(is_loaded.begin(), list_.variables.size(), true);
    for (const StepList::Transfer& transfer : list_.transfers)
      if (transfer.kind == StepList::Transfer::Kind::kLoad) is_loaded[transfer.slot] = true;
    std::erase_if(list_.transfers, [&](const StepList::Transfer& transfer) { return !is_loaded[transfer.slot]; });
    std::vector<std::uint32_t> slots(num_slots_, 0);  // Without those.
    for (std::uint32_t slot = 0, used = 0; slot < num_slots_; ++slot) slots[slot] = is_loaded[slot] ? used++ : 0;
    for (StepList::Transfer& transfer : list_.transfers) transfer.slot = slots[transfer.slot];
    std::stable_sort(list_.transfers.begin(), list_.transfers.end(), [](const auto& a, const auto& b) {
      return a.position != b.position ? a.position < b.position : a.kind < b.kind;
    });
    return std::move(list_);
  }

 private:
  void add_transfer(StepList::Transfer::Kind kind, std::uint32_t root, std::size_t value) {
    list_.roots[root].is_transferred = true;
    list_.transfers.push_back({kind, root, slot_[value], list_.steps.size()});
  }

  // A step that waited may have lost what was loaded for it before it ran.
  void forget_unused_loads() {
    std::vector<bool> is_used(list_.roots.size(), false);
    for (const StepList::Step& step : list_.steps)
      for (const auto* values : {&step.in, &step.out})
        for (const std::uint32_t value : *values) is_used[list_.values[value].root] = true;
    std::erase_if(list_.transfers, [&](const StepList::Transfer& transfer) {
      if (transfer.kind != StepList::Transfer::Kind::kLoad || is_used[transfer.root]) return false;
      list_.roots[transfer.root].place = Place::kNothing;
      return true;
    });
  }

  bool is_parked(std::size_t value) const {
    const std::uint32_t root = root_of_value_[value];
    return root != StepList::kNone && from_.roots[root].is_parked;
  }

  // A value is written once, so once it is stored it need not be stored again.
  void store(std::size_t value) {
    if (slot_[value] != StepList::kNone || is_parked(value)) return;
    begin_store(value, num_slots_++);
  }
  void begin_store(std::size_t value, std::uint32_t slot) {
    slot_[value] = slot;
    stored_[value] = now_[root_of_value_[value]];
    list_.roots[stored_[value]].is_stored = true;
    add_transfer(StepList::Transfer::Kind::kStore, stored_[value], value);
  }
  // The last value of a parked variable is stored when it has been made, beside the one before.
  void store_parked(const StepProgram::Step& step) {
    for (const int number : step.writes) {
      const auto value = static_cast<std::size_t>(number);
      if (!is_parked(value) || !program_.values[value].is_kept) continue;
      begin_store(value, from_.roots[root_of_value_[value]].number);
      open_stores_.push_back(value);
    }
  }
  // All of them are in the file before anything in memory changes.
  void end_parked_stores() {
    for (const std::size_t value : open_stores_) {
      if (stored_[value] == StepList::kNone) continue;
      add_transfer(StepList::Transfer::Kind::kStored, stored_[value], value);
      stored_[value] = StepList::kNone;
    }
    open_stores_.clear();
  }

  void drop(std::size_t value) {
    is_there_[value] = false;
    if (stored_[value] == StepList::kNone) return;
    add_transfer(StepList::Transfer::Kind::kStored, stored_[value], value);
    stored_[value] = StepList::kNone;
  }

  void load(std::size_t value) {
    const std::uint32_t root = root_of_value_[value];
    add_copy(root, "loaded");
    if (is_parked(value)) slot_[value] = from_.roots[root].number;
    is_there_[value] = true;
    add_transfer(StepList::Transfer::Kind::kLoad, now_[root], value);
  }

  void add_copy(std::uint32_t root, const char* returned) {
    now_[root] = static_cast<std::uint32_t>(list_.roots.size());
    list_.roots.push_back(from_.roots[root]);
    list_.roots.back().returned = returned;
    if (from_.roots[root].is_parked) list_.roots.back().place = Place::kPlanned;
  }

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
    std::uint32_t& latest = copies_[value];
    if (list_.values[latest].root != root) {
      latest = static_cast<std::uint32_t>(list_.values.size());
      list_.values.push_back(from_.values[value]);
      list_.values.back().root = root;
    }
    return latest;
  }

  void add(std::size_t number, bool again) {
    const StepProgram::Step& planned = program_.steps[number];
    StepList::Step step = from_.steps[number];
    if (from_.changes_memory(step)) end_parked_stores();
    for (std::uint32_t& input : step.in) input = value_now(input);
    for (std::size_t k = 0; k < step.out.size(); ++k) {
      const auto made = static_cast<std::size_t>(planned.writes[k]);
      const std::uint32_t root = from_.values[step.out[k]].root;
      if (again && !is_there_[made]) add_copy(root, "again");
      if (!again && is_parked(made) && !is_there_[static_cast<std::size_t>(planned.takes_over[k])]) add_copy(root, "");
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
    if (!again) store_parked(planned);
  }

  const StepList& from_;
  const StepProgram& program_;
  StepList list_;
  std::vector<std::uint32_t> now_;     // By root: its latest copy.
  std::vector<std::uint32_t> copies_;  // By value: its latest copy.
  std::vector<bool> is_there_;         // By value of the step program.
  std::vector<std::vector<std::size_t>> ends_;
  const std::vector<std::uint32_t> root_of_value_;  // In the list it came from.
  std::vector<std::size_t> open_stores_;            // Values of parked variables whose stores were not waited for.
  std::vector<std::uint32_t> slot_, stored_;        // By value: its slot; the root that is being stored.
  std::uint32_t num_slots_ = 0;
};

}  // namespace

namespace {

// Values of parked variables are in the file at the start, and at the end again. Those between two changes stay.
void park_variables(const StepList& list, StepProgram& program) {
  const std::vector<std::uint32_t> roots = roots_of_values(list, program);
  std::vector<StepProgram::Value*> last(list.roots.size(), nullptr);  // By root: its last value.
  for (std::size_t number = 0; number < program.values.size(); ++number) {
    if (roots[number] == StepList::kNone || !list.roots[roots[number]].is_parked) continue;
    StepProgram::Value& value = program.values[number];
    value.may_spill = value.starts_stored = value.is_given;
    value.is_pinned = !value.is_given;
    last[roots[number]] = &value;
  }
  for (StepProgram::Value* const value : last)
    if (value && !value->is_given) value->is_kept = value->may_spill = true;
  for (std::size_t step = 0; step < program.steps.size(); ++step)
    for (const int number : program.steps[step].reads) {
      StepProgram::Value& value = program.values[static_cast<std::size_t>(number)];
      if (value.starts_stored) value.last_held = static_cast<int>(step);
    }
}

}  // namespace

void allow_spilling(const StepList& list, StepProgram& program) {
  const std::size_t least = std::max(kSpillAlignment, floors_of(program).natural_peak / kSmallestShare);
  for (StepProgram::Value& value : program.values) {
    if (value.bytes < least) continue;
    value.bytes = transferred_bytes(value.bytes);  // All of them, since one may take the place of another.
    value.may_spill = !value.is_given && !value.is_kept;
  }
  bool is_changed = false;
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    is_changed = is_changed || list.changes_memory(list.steps[step]);
    if (!is_changed) continue;
    for (const auto* values : {&program.steps[step].reads, &program.steps[step].writes})
      for (const int number : *values) {
        StepProgram::Value& value = program.values[static_cast<std::size_t>(number)];
        value.may_spill = false;
        value.is_pinned = true;
      }
  }
  park_variables(list, program);
}

StepProgram step_program_of(const StepList& list, const Passes& passes) { return StepProgramMaker(list, passes).run(); }

StepList with_repeats(const StepList& list, const StepProgram& program, const StepSchedule& schedule) {
  return Repeater(list, program).run(schedule);
}

}  // namespace plimsoll::internal
