#include "plimsoll/plan/internal/step_facts.h"

#include <algorithm>

namespace plimsoll::internal {

PackedLists::PackedLists(const std::vector<std::vector<int>>& rows) {
  begins_.reserve(rows.size() + 1);
  for (const auto& row : rows) {
    items_.insert(items_.end(), row.begin(), row.end());
    begins_.push_back(items_.size());
  }
}

StepFacts::StepFacts(const StepProgram& p) : program(p) {
  find_lives();
  find_free();
  find_parents();
  look_through_the_dead();
}

void StepFacts::find_lives() {
  maker.assign(value_count(), StepProgram::kNone);
  taken_by = maker;
  last_held = maker;
  time.assign(1, 0);
  std::vector<std::vector<int>> read_by(value_count());
  for (int step = 0; step < step_count(); ++step) {
    const StepProgram::Step& s = program.steps[step];
    time.push_back(time.back() + s.cost);
    for (const int value : s.reads)
      if (read_by[value].empty() || read_by[value].back() != step) read_by[value].push_back(step);
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      maker[s.writes[k]] = step;
      if (const int taken = taken_over(step, k); taken != StepProgram::kNone) taken_by[taken] = step;
    }
  }
  readers = PackedLists(read_by);
  std::vector<std::vector<int>> ending(step_count());
  for (int value = 0; value < value_count(); ++value) {
    const StepProgram::Value& v = program.values[value];
    last_held[value] = std::max({maker[value], last_read(value), std::min(v.last_held, step_count() - 1)});
    if (v.is_kept || (v.is_given && v.last_held == StepProgram::kNone)) last_held[value] = kNever;
    if (taken_by[value] != StepProgram::kNone) last_held[value] = taken_by[value];
    if (last_held[value] >= 0 && last_held[value] != kNever) ending[last_held[value]].push_back(value);
  }
  ends = PackedLists(ending);
}

// A free value may leave whenever everything it is made from will be there, or can be made, at its next reader.
void StepFacts::find_free() {
  is_free.assign(value_count(), 0);
  until = last_held;
  std::vector<int> had_until = last_held;  // It can be made, or cannot have been dropped.
  stays_from.assign(value_count(), 0);
  for (const StepProgram::Step& s : program.steps) {
    int available = kNever,
        changes = kNever;  // When the first of what it reads is gone; and cannot be made by any means.
    for (const int value : s.reads) {
      available = std::min(available, had_until[value]);
      const bool may_remake = maker[value] != StepProgram::kNone && program.steps[maker[value]].may_repeat;
      if (!may_remake && taken_by[value] != StepProgram::kNone) changes = std::min(changes, taken_by[value]);
    }
    for (const int value : s.writes) {
      const StepProgram::Value& v = program.values[value];
      if (!s.may_repeat || v.is_pinned || v.is_kept) continue;
      is_free[value] = 1;
      until[value] = available;
      had_until[value] = std::max(available, last_read(value));
      stays_from[value] = last_read(value) > changes ? changes : kNever;
    }
  }
}

// Of a chain of steps that each take over the bytes of the one before, every one has all that was added so far: beyond
// the latest so many, lists of a long chain would grow with its square. They are for prices only.
constexpr std::ptrdiff_t kMostParents = 1024;

void StepFacts::find_parents() {
  own_cost.assign(value_count(), 0);
  std::vector<std::vector<int>> up(value_count()), down(value_count());
  for (int step = 0; step < step_count(); ++step) {
    const StepProgram::Step& s = program.steps[step];
    for (std::size_t k = 0; k < s.writes.size(); ++k) {
      const int value = s.writes[k], taken = taken_over(step, k);
      std::vector<int>& from = up[value];
      own_cost[value] = s.cost;
      for (const int read : s.reads)
        if (read != taken) from.push_back(read);
      if (taken != StepProgram::kNone && is_free[taken]) {
        own_cost[value] += own_cost[taken];
        from.insert(from.end(), up[taken].begin(), up[taken].end());
      }
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      if (std::ssize(from) > kMostParents) from.erase(from.begin(), from.end() - kMostParents);
      for (const int parent : from) down[parent].push_back(value);
    }
  }
  parents = PackedLists(up);
  children = PackedLists(down);
}

void StepFacts::look_through_the_dead() {
  constexpr int kLookedThrough = 64;
  far_cost = own_cost;
  std::vector<std::vector<int>> up(value_count()), down(value_count());
  std::vector<int> seen(value_count(), StepProgram::kNone), open;
  for (int value = 0; value < value_count(); ++value) {
    if (!is_free[value]) continue;
    int back = StepProgram::kNone, before = maker[value];  // The reader at the end of its longest rest.
    std::uint64_t longest = 0;
    for (const int reader : reads_of(value)) {
      if (back == StepProgram::kNone || time[reader] - time[before] > longest) {
        longest = time[reader] - time[before];
        back = reader;
      }
      before = reader;
    }
    open.assign(parents[value].begin(), parents[value].end());
    for (int left = makes_gradient(value) ? 0 : kLookedThrough; !open.empty();) {
      const int parent = open.back();
      open.pop_back();
      if (seen[parent] == value) continue;
      seen[parent] = value;
      if (!is_free[parent]) continue;
      const bool is_dead = back != StepProgram::kNone && last_held[parent] <= back && last_read(parent) < back;
      if (!is_dead || left-- <= 0) {
        up[value].push_back(parent);
        continue;
      }
      far_cost[value] += own_cost[parent];
      open.insert(open.end(), parents[parent].begin(), parents[parent].end());
    }
    for (const int parent : up[value]) down[parent].push_back(value);
  }
  far_parents = PackedLists(up);
  far_children = PackedLists(down);
}

}  // namespace plimsoll::internal
