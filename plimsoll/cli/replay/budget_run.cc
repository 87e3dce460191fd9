#include "plimsoll/cli/replay/budget_run.h"

#include <algorithm>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr int kNone = StepProgram::kNone;

// When each value of a program is made, read and released.
struct Lives {
  explicit Lives(const StepProgram& program) : maker(program.values.size(), kNone), last_read(maker), last_held(maker) {
    const int steps = static_cast<int>(program.steps.size());
    for (int step = 0; step < steps; ++step) {
      const StepProgram::Step& s = program.steps[step];
      for (const int value : s.reads) last_read[value] = step;
      for (const int value : s.writes) maker[value] = step;
      for (const int value : s.takes_over)
        if (value != kNone) last_held[value] = step;
    }
    for (std::size_t value = 0; value < program.values.size(); ++value) {
      if (last_held[value] != kNone) continue;  // Its storage is reused by a later version.
      const StepProgram::Value& v = program.values[value];
      last_held[value] = v.is_kept ? steps : std::max({maker[value], last_read[value], v.last_held});
    }
  }

  std::vector<int> maker, last_read, last_held;
};

// Small inputs that the run releases early stay as long as something may be recomputed from them.
void hold_small_inputs(StepProgram& program) {
  constexpr std::size_t kSmall = 1 << 20;
  const Lives lives(program);
  std::vector<int> wanted(lives.last_read);  // By itself, or to recompute something.
  for (int step = static_cast<int>(program.steps.size()) - 1; step >= 0; --step) {
    const StepProgram::Step& s = program.steps[step];
    int last = kNone;
    if (!s.may_repeat) continue;
    for (const int value : s.writes)
      if (!program.values[value].is_pinned) last = std::max(last, wanted[value]);
    for (const int value : s.reads) wanted[value] = std::max(wanted[value], last);
  }
  for (std::size_t value = 0; value < program.values.size(); ++value) {
    StepProgram::Value& v = program.values[value];
    const int maker = lives.maker[value];
    if (v.is_kept || v.bytes > kSmall || maker == kNone || program.steps[maker].may_repeat) continue;
    if (wanted[value] > lives.last_held[value]) v.last_held = wanted[value];
  }
}

// The steps [begin, end) of a program as a program. Earlier values are given, values needed later are kept.
class Slice {
 public:
  Slice(const StepProgram& whole, const Lives& lives, int begin, int end, const std::vector<char>& stored)
      : number_(whole.values.size(), kNone) {
    for (std::size_t value = 0; value < whole.values.size(); ++value) {
      const bool is_pinned = whole.values[value].is_pinned || whole.values[value].is_kept;
      const int until = is_pinned ? lives.last_held[value] : lives.last_read[value];
      const bool is_given = lives.maker[value] < begin && std::max(until, lives.last_read[value]) >= begin;
      const bool is_made = lives.maker[value] >= begin && lives.maker[value] < end;
      if (!is_given && !is_made) continue;
      number_[value] = static_cast<int>(program.values.size());
      original_.push_back(static_cast<int>(value));
      StepProgram::Value copy = whole.values[value];
      copy.is_given = is_given;
      copy.starts_stored = is_given && stored[value];
      copy.is_kept = std::max(until, lives.last_read[value]) >= end;
      copy.last_held = std::max(kNone, std::min(lives.last_held[value], end) - begin);
      program.values.push_back(copy);
    }
    for (int step = begin; step < end; ++step) {
      StepProgram::Step copy = whole.steps[step];
      for (std::vector<int>* list : {&copy.reads, &copy.writes, &copy.takes_over})
        for (int& value : *list)
          if (value != kNone) value = number_[value];
      program.steps.push_back(std::move(copy));
    }
  }

  // Which values of the whole are only in storage after the slice.
  void update(const StepSchedule& schedule, std::vector<char>& stored) const {
    for (const auto [action, number] : schedule.entries) {
      if (action == Action::kDrop || action == Action::kLoad) stored[original_[number]] = action == Action::kDrop;
    }
  }

  StepProgram program;

 private:
  std::vector<int> number_;    // From values of the whole to those of the slice.
  std::vector<int> original_;  // And back.
};

void add(BudgetRun& run, const StepSchedule& schedule) {
  run.peak_bytes = std::max(run.peak_bytes, schedule.peak);
  run.recompute_ns += schedule.again_cost;
  run.stall_ns += schedule.stall_cost;
  run.stored_bytes += schedule.stored_bytes;
  run.evictions += schedule.evictions;
  run.bound_ns += schedule.lower_bound == UINT64_MAX ? 0 : schedule.lower_bound;
}

void check(const StepProgram& program, const StepSchedule& schedule, std::size_t limit) {
  const std::string fault = validate_schedule(program, schedule, limit);
  if (!fault.empty()) throw Error("budget: the planner made an invalid schedule: " + fault);
}

void run_planned(const OperatorLog& log, const BudgetRunOptions& options, RecomputeOptions recompute_options,
                 BudgetRun& run) {
  StepProgram whole = log.program;
  hold_small_inputs(whole);
  const Lives lives(whole);
  std::vector<char> stored(whole.values.size(), 0);
  const int steps = static_cast<int>(whole.steps.size());
  for (int begin = 0, end = 0; begin < steps; begin = end) {
    std::uint64_t cost = 0;  // Steps without cost belong to the next one.
    while (end < steps && (cost == 0 || log.round[end] == log.round[end - 1])) cost += whole.steps[end++].cost;
    if (options.progress)
      recompute_options.progress = [&](double share) {
        options.progress((begin + share * (end - begin)) / static_cast<double>(steps));
      };
    const Slice slice(whole, lives, begin, end, stored);
    const StepSchedule schedule = recompute(slice.program, options.limit, recompute_options);
    run.stopped_at = log.round[begin];
    if (!schedule.completed) return;
    check(slice.program, schedule, options.limit);
    add(run, schedule);
    slice.update(schedule, stored);
  }
  run.completed = true;
}

}  // namespace

double BudgetRun::slowdown() const {
  if (base_ns == 0) return 1;
  return static_cast<double>(base_ns + recompute_ns + stall_ns) / static_cast<double>(base_ns);
}

BudgetRun run_budget(const OperatorLog& log, const BudgetRunOptions& options) {
  BudgetRun run;
  for (const StepProgram::Step& step : log.program.steps) run.base_ns += step.cost;
  RecomputeOptions recompute_options;
  recompute_options.spill_bytes_per_cost = options.spill_bytes_per_second / 1e9;
  if (!options.policy) {
    run_planned(log, options, recompute_options, run);
    return run;
  }
  const int rounds = std::max(1, log.round.back() - log.round.front());
  recompute_options.group_cost = run.base_ns / static_cast<std::uint64_t>(rounds) / 64 + 1;
  const StepSchedule schedule = recompute_online(log.program, options.limit, *options.policy, recompute_options);
  add(run, schedule);
  run.completed = schedule.completed;
  if (schedule.completed) check(log.program, schedule, options.limit);
  return run;
}

}  // namespace plimsoll::internal
