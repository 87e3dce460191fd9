#include "plimsoll/plan/internal/rehearsal.h"

#include <algorithm>

namespace plimsoll::internal {

constexpr int kNone = StepProgram::kNone;

Rehearsal::Rehearsal(const StepFacts& facts, std::size_t limit, const EvictionPolicy& policy)
    : facts_(facts), policy_(policy), limit_(limit), victims_(facts, policy_) {
  schedule_.base_cost = facts.time.back();
  for (int value = 0; value < facts.value_count(); ++value) {
    const StepProgram::Value& v = facts.program.values[value];
    if (!v.is_given || v.starts_stored || facts.last_held[value] < 0) continue;
    victims_.arrive(value);
    use_ += v.bytes;
  }
  schedule_.peak = use_;
}

bool Rehearsal::run() {
  if (use_ > limit_) return false;
  for (at_ = 0; at_ < facts_.step_count(); ++at_) {
    if (!run_step(at_)) return false;
  }
  schedule_.completed = true;
  return true;
}

bool Rehearsal::run_step(int step) {
  frames_.clear();
  has_.clear();
  open(step, kNone);
  if (policy_.in_order && pin_what_is_there() != kNone && !bring_in_order()) return false;
  if (!bring_operands()) return false;
  if (!policy_.knows_future) drop_ghosts();
  if (!execute(step, kNone)) return false;
  victims_.at = step + 1;  // Operands are ranked by their next readers.
  close();
  for (const int value : facts_.ends[step]) {
    if (victims_.is_there(value)) {
      victims_.leave(value);
      use_ -= facts_.bytes(value);
    }
    victims_.forget_stored(value);
  }
  return true;
}

void Rehearsal::open(int step, int target) {
  frames_.push_back({step, target, has_.size()});
  has_.resize(has_.size() + facts_.program.steps[step].reads.size(), 0);
}

void Rehearsal::close() {
  const Frame frame = frames_.back();
  const auto& reads = facts_.program.steps[frame.step].reads;
  for (std::size_t k = 0; k < reads.size(); ++k)
    if (has_[frame.flags + k]) victims_.unpin(reads[k]);
  has_.resize(frame.flags);
  frames_.pop_back();
}

int Rehearsal::pin_what_is_there() {
  const Frame& frame = frames_.back();
  const auto& reads = facts_.program.steps[frame.step].reads;
  int missing = kNone;
  victims_.work += reads.size();
  for (std::size_t k = 0; k < reads.size(); ++k) {
    if (has_[frame.flags + k]) continue;
    if (victims_.is_there(reads[k])) {
      victims_.pin(reads[k]);
      has_[frame.flags + k] = 1;
    } else if (missing == kNone) {
      missing = reads[k];
    }
  }
  return missing;
}

bool Rehearsal::bring_operands() {
  for (const std::size_t depth = frames_.size();;) {
    const int missing = pin_what_is_there();
    if (missing == kNone) {
      if (frames_.size() == depth) return true;
      if (!execute(frames_.back().step, frames_.back().target)) return false;
      close();
    } else if (victims_.is_stored(missing)) {
      if (!load(missing)) return false;
    } else {
      if (!facts_.is_free[missing] || is_dear()) return false;
      open(facts_.maker[missing], missing);
    }
  }
}

void Rehearsal::find_needed(int step) {
  needed_.clear();
  needed_for_.resize(facts_.program.steps.size(), kNone);
  const auto look_at = [&](int reader) {
    for (const int value : facts_.program.steps[reader].reads)
      if (!victims_.is_there(value) && !victims_.is_stored(value) && facts_.is_free[value])
        open_values_.push_back(value);
  };
  look_at(step);
  while (!open_values_.empty()) {
    const int maker = facts_.maker[open_values_.back()];
    open_values_.pop_back();
    if (needed_for_[maker] == step) continue;
    needed_for_[maker] = step;
    needed_.push_back(maker);
    look_at(maker);
  }
  victims_.work += needed_.size();
  std::sort(needed_.begin(), needed_.end());
}

bool Rehearsal::bring_in_order() {
  const int step = frames_.back().step;
  find_needed(step);
  const auto& steps = facts_.program.steps;
  for (const int again : needed_)
    for (const int value : steps[again].reads) victims_.want(value);
  for (const int value : steps[step].reads) victims_.want(value);
  for (const int again : needed_) {
    int target = kNone;
    for (const int value : steps[again].writes)
      if (target == kNone && !victims_.is_there(value)) target = value;
    if (target != kNone) {  // Otherwise it ran on the way.
      open(again, target);
      if (!bring_operands() || !execute(again, target)) return false;
      close();
    }
    for (const int value : steps[again].reads) victims_.unwant(value);
  }
  for (const int value : steps[step].reads) victims_.unwant(value);
  return true;
}

std::size_t Rehearsal::fresh_bytes(int step) const {
  const StepProgram::Step& s = facts_.program.steps[step];
  std::size_t fresh = 0;
  for (std::size_t k = 0; k < s.writes.size(); ++k) {
    const int taken = facts_.taken_over(step, k);
    const bool in_place = taken != kNone && victims_.is_there(taken) && !victims_.is_there(s.writes[k]);
    if (!in_place) fresh += facts_.bytes(s.writes[k]);
  }
  return fresh;
}

bool Rehearsal::execute(int step, int target) {
  const StepProgram::Step& s = facts_.program.steps[step];
  for (const int value : s.takes_over)
    if (value != kNone) victims_.pin(value);
  std::size_t need = fresh_bytes(step) + s.scratch_bytes;
  int given_up = kNone;
  const bool fits = make_room_or_take(step, need, given_up);
  for (const int value : s.takes_over)
    if (value != kNone) victims_.unpin(value);
  if (!fits) return false;
  schedule_.peak = std::max(schedule_.peak, use_ + need);
  const bool again = frames_.size() > 1;
  if (again) schedule_.again_cost += s.cost;
  victims_.now += s.cost;
  if (given_up != kNone) add(Action::kTake, given_up);
  add(again ? Action::kAgain : Action::kRun, step);
  for (std::size_t k = 0; k < s.writes.size(); ++k) {
    const int value = s.writes[k], taken = facts_.taken_over(step, k);
    if (victims_.is_there(value)) continue;
    if (taken != kNone && victims_.is_there(taken)) {
      victims_.leave(taken);
      use_ -= facts_.bytes(taken);
    }
    victims_.arrive(value);
    use_ += facts_.bytes(value);
  }
  for (const int value : s.reads) victims_.touch(value);
  if (given_up != kNone) give_up(given_up);
  if (!again) return true;
  for (const int value : s.writes) {
    if (!victims_.is_there(value) || !victims_.is_dead(value)) continue;
    if (value != target && !victims_.is_pinned(value) && !policy_.knows_future)
      drop(value);
    else
      ghosts_.push_back(value);
  }
  return !is_dear();
}

bool Rehearsal::load(int value) {
  if (!make_room(facts_.bytes(value))) return false;
  schedule_.stall_cost += victims_.load(value);
  victims_.arrive(value);
  use_ += facts_.bytes(value);
  schedule_.peak = std::max(schedule_.peak, use_);
  add(Action::kLoad, value);
  return !is_dear();
}

bool Rehearsal::make_room(std::size_t bytes) {
  while (use_ + bytes > limit_) {
    int victim = victims_.pick();
    if (victim == kNone && policy_.robs_waiting) victim = take_from_waiting();
    if (victim == kNone || is_dear()) return false;
    evict(victim);
  }
  return true;
}

int Rehearsal::takeable(int step) {
  const StepProgram::Step& s = facts_.program.steps[step];
  if (s.may_take.empty() || !policy_.knows_future) return kNone;
  if (victims_.is_there(s.writes[0]) || facts_.taken_over(step, 0) != kNone) return kNone;
  for (const int value : s.may_take)
    if (victims_.is_there(value) && !victims_.is_stored(value) && victims_.pins(value) == 1 &&
        facts_.last_held[value] != step && victims_.may_drop_from(value, next_at()))
      return value;
  return kNone;
}

// As make_room(), but an operand that may be taken goes before a victim that is worth more.
bool Rehearsal::make_room_or_take(int step, std::size_t& need, int& taken) {
  if (use_ + need <= limit_) return true;
  const int operand = takeable(step);
  while (use_ + need > limit_) {
    int victim = victims_.pick();
    if (operand != kNone && taken == kNone && (victim == kNone || victims_.goes_before(operand, victim, next_at()))) {
      taken = operand;
      need -= facts_.bytes(operand);
      continue;
    }
    if (victim == kNone && policy_.robs_waiting) victim = take_from_waiting();
    if (victim == kNone || is_dear()) return false;
    evict(victim);
  }
  return true;
}

void Rehearsal::give_up(int value) {
  const Frame& frame = frames_.back();
  const auto& reads = facts_.program.steps[frame.step].reads;
  for (std::size_t k = 0; k < reads.size(); ++k) {
    if (reads[k] != value || !has_[frame.flags + k]) continue;
    has_[frame.flags + k] = 0;
    victims_.unpin(value);
  }
  const bool is_wanted = facts_.last_read(value) >= next_at();
  victims_.leave(value);
  use_ -= facts_.bytes(value);
  if (!is_wanted) return;
  ++schedule_.evictions;
  victims_.note_dropped(value);
}

// The operand of the step that waits longest goes first: it is wanted last.
int Rehearsal::take_from_waiting() {
  for (std::size_t f = 0; f + 1 < frames_.size(); ++f) {
    const auto& reads = facts_.program.steps[frames_[f].step].reads;
    for (std::size_t k = 0; k < reads.size(); ++k) {
      const int value = reads[k];
      const auto& top = facts_.program.steps[frames_.back().step];
      if (!has_[frames_[f].flags + k] || facts_.bytes(value) == 0 || !victims_.may_drop(value)) continue;
      if (std::find(top.reads.begin(), top.reads.end(), value) != top.reads.end()) continue;
      if (std::find(top.takes_over.begin(), top.takes_over.end(), value) != top.takes_over.end()) continue;
      for (std::size_t g = f; g + 1 < frames_.size(); ++g) {
        const auto& others = facts_.program.steps[frames_[g].step].reads;
        for (std::size_t j = 0; j < others.size(); ++j) {
          if (others[j] != value || !has_[frames_[g].flags + j]) continue;
          has_[frames_[g].flags + j] = 0;
          victims_.unpin(value);
        }
      }
      return value;
    }
  }
  return kNone;
}

void Rehearsal::drop(int value) {
  add(Action::kDrop, value);
  victims_.leave(value);
  use_ -= facts_.bytes(value);
}

void Rehearsal::evict(int value) {
  const bool is_wanted = !victims_.is_dead(value);
  if (is_wanted) ++schedule_.evictions;
  if (is_wanted && victims_.prefers_store(value)) {
    if (!victims_.is_stored(value)) {
      add(Action::kStore, value);
      schedule_.stored_bytes += facts_.bytes(value);
      schedule_.stall_cost += victims_.store(value);
    }
    drop(value);
    return;
  }
  drop(value);
  if (is_wanted && !victims_.is_stored(value)) victims_.note_dropped(value);
}

void Rehearsal::drop_ghosts() {
  for (const int value : ghosts_)
    if (victims_.is_there(value) && victims_.is_dead(value) && !victims_.is_pinned(value)) drop(value);
  ghosts_.clear();
}

}  // namespace plimsoll::internal
