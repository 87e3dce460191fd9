#include "plimsoll/tensor/evict/domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/tensor/evict/recipe_book.h"

namespace plimsoll::evict {
namespace {

constexpr double kShareOfAll = 1.0 / 64;       // The most a group of dropped values may cost while there is a choice.
constexpr std::uint32_t kMostLooked = 64;      // Recipes visited to find a cost.
constexpr std::uint64_t kMostRepeated = 64;    // Repeated operations per operation of the program before it gives up.
constexpr std::uint64_t kFewRepeated = 10000;  // This many are always allowed.

// Runs before the program's own static objects: a budget may be one.
struct Registration {
  Registration() noexcept { set_evictor_factory(&Domain::make); }
};
[[gnu::init_priority(101)]] const Registration kRegistration;

bool is_charged_below(const Chunk& chunk, const BudgetNode& budget) noexcept {
  return chunk.budget && chunk.budget->is_below(budget);
}

}  // namespace

std::shared_ptr<Evictor> Domain::make(const EvictorOptions& options) {
  return std::shared_ptr<Domain>(new Domain(options), &Domain::abandon);
}

// Values that could only be stored stay in memory from now on.
void Domain::abandon(Domain* domain) noexcept {
  {
    RecipeBook& book = RecipeBook::instance();
    Trash trash;
    const std::lock_guard lock(book.mutex());
    for (std::size_t i = domain->candidates_.size(); i-- > 0;) {
      Value& value = *domain->candidates_[i].value;
      if (value.maker) continue;
      domain->forget(value);
      StorageAccess::set_droppable(*value.storage, false);
      book.queue(value);
    }
    book.end_queued(trash);
    domain->is_abandoned_ = true;
    if (!domain->is_ended()) return;
  }
  delete domain;
}

void Domain::begin_turn(std::uint32_t generation) {
  if (is_stuck(generation))
    throw FailedPrecondition(
        "reading a dropped tensor in a child of fork(): another thread was recomputing under the same budget when the "
        "process forked; read it before fork(), or fork while no other thread works under the budget");
  if (num_turns_++ == 0) generation_ = generation;
}

bool Domain::end_turn() noexcept {
  --num_turns_;
  return is_ended();
}

bool Domain::is_worth_dropping(const Chunk& chunk, std::size_t bytes) const noexcept {
  return bytes >= std::min(limit_, chunk.budget ? chunk.budget->least_evicting_limit() : limit_) / 1000;
}

void Domain::add(const Recipe& recipe) noexcept {
  ++num_recipes_;
  total_cost_ += recipe.cost;
}

bool Domain::remove(const Recipe& recipe) noexcept {
  total_cost_ = num_recipes_ == 1 ? 0 : total_cost_ - recipe.cost;
  --num_recipes_;
  return is_ended();
}

void Domain::add(Value& value) noexcept {
  value.home = this;
  value.candidate = static_cast<std::uint32_t>(candidates_.size());
  candidates_.push_back({&value, clock_, static_cast<float>(value.bytes), -1});
}

void Domain::make_room(std::size_t more) {
  if (candidates_.capacity() - candidates_.size() < more)
    candidates_.reserve(std::max(candidates_.capacity() * 2, candidates_.size() + more));
}

void Domain::forget(Value& value) noexcept {
  if (value.candidate == Value::kNone) return;
  Candidate& place = candidates_[value.candidate];
  place = candidates_.back();
  place.value->candidate = value.candidate;
  candidates_.pop_back();
  value.candidate = Value::kNone;
}

void Domain::touch(const Value& value) noexcept {
  if (value.candidate != Value::kNone) candidates_[value.candidate].last_use = clock_;
}

void Domain::note_work(std::uint64_t work) noexcept {
  clock_ += static_cast<double>(work);
  ++num_work_;
}

void Domain::note_again(const Recipe& recipe) noexcept {
  clock_ += static_cast<double>(recipe.cost);
  ++num_again_;
  ++untold_.repeats;
}

void Domain::note_load(std::size_t bytes) noexcept {
  ++untold_.loads;
  untold_.loaded_bytes += bytes;
}

void Domain::tell_trace(const Told& told, const BudgetNode& budget) {
  const std::string name = json_text(nlohmann::json(budget.name()));
  trace_text(fmt::format(R"(@evicted {{"budget":{},"drops":{},"dropped_bytes":{},"stores":{},"stored_bytes":{},)"
                         R"("repeats":{},"loads":{},"loaded_bytes":{}}})",
                         name, told.drops, told.dropped_bytes, told.stores, told.stored_bytes, told.repeats, told.loads,
                         told.loaded_bytes));
}

void Domain::mark(const Value& value) noexcept {
  if (value.candidate != Value::kNone) candidates_[value.candidate].cost = -1;
}

// Resets the costs that depend on this value: those of what its recipe reads and of what is computed from it, through
// values without bytes.
void Domain::changed_around(const Value& value) noexcept {
  RecipeWalk walk(RecipeBook::instance().new_walk());
  std::uint32_t looked = 0;
  walk.push(value.maker);
  walk.push_readers(value);
  while (Recipe* const recipe = walk.pop()) {
    if (++looked > kMostLooked) return;
    for (const Input& input : recipe->inputs()) {
      mark(*input.value);
      if (!input.value->has_bytes()) walk.push(input.value->maker);
    }
    for (const Output& output : recipe->outputs()) {
      if (!output.value) continue;
      mark(*output.value);
      if (!output.value->has_bytes()) walk.push_readers(*output.value);
    }
  }
}

// The work to recover the value once dropped: its recipe, the recipes that needs, and the dropped values that need it.
float Domain::cost_of(const Value& value) noexcept {
  RecipeWalk walk(RecipeBook::instance().new_walk());
  std::uint32_t looked = 0;
  float cost = 0;
  const auto add = [&](Recipe* recipe) {
    if (looked < kMostLooked && walk.push(recipe)) {
      cost += recipe->cost;
      ++looked;
    }
  };
  add(value.maker);
  while (Recipe* const recipe = walk.pop())
    for (const Input& input : recipe->inputs())
      if (!input.value->has_bytes() && !input.value->is_stored()) add(input.value->maker);
  const auto add_readers = [&](const Value& read) {
    for (const Input* input = read.readers; input && looked < kMostLooked; input = input->next)
      for (const Output& output : input->reader->outputs())
        if (output.value && !output.value->has_bytes() && !output.value->is_stored()) add(input->reader);
  };
  add_readers(value);
  while (Recipe* const recipe = walk.pop())
    for (const Output& output : recipe->outputs())
      if (output.value && !output.value->has_bytes()) add_readers(*output.value);
  return cost;
}

Domain::Choice Domain::choose(const BudgetNode& budget, const Arena* arena) noexcept {
  const auto cap = static_cast<float>(std::max(total_cost_ * kShareOfAll, 1.0));
  Choice best, soon_read;  // What a recomputation is about to read is dropped only as a last resort.
  for (Candidate& candidate : candidates_) {
    if (candidate.cost < 0) candidate.cost = cost_of(*candidate.value);
    Value& value = *candidate.value;
    double cost = value.maker ? candidate.cost : std::numeric_limits<double>::infinity();
    const bool is_cheaper_stored = spiller_ && storing_cost(value) < cost;
    if (is_cheaper_stored) cost = storing_cost(value);
    if (std::isinf(cost)) continue;
    const int level = cost <= cap ? 0 : 1 + std::ilogb(cost / cap);
    const double score = (cost + 1.0) / (candidate.bytes * (clock_ - candidate.last_use + 1));
    if (!best.is_better(level, score)) continue;
    Choice& choice = value.pending > 0 ? soon_read : best;
    if (value.locks > 0 || !choice.is_better(level, score)) continue;
    if (!is_charged_below(*value.storage->chunk(), budget) || (arena && &value.device->arena() != arena)) continue;
    choice = {&value, score, level, is_cheaper_stored && !value.is_stored()};
  }
  return best.value ? best : soon_read;
}

std::size_t Domain::evict(const BudgetNode& budget, const Arena* arena, std::size_t bytes) {
  RecipeBook& book = RecipeBook::instance();
  Trash trash;
  std::unique_lock lock(book.mutex());
  std::size_t freed = book.end_orphans(trash);
  has_given_up_ = num_again_ > kFewRepeated + kMostRepeated * num_work_;
  while (freed < bytes && !has_given_up_ && !is_stuck(book.generation_)) {
    const Choice choice = choose(budget, arena);
    Value* const value = choice.value;
    if (!value) break;
    if (choice.is_stored_first && !store(*value, lock, trash)) continue;
    trash.make_room(1);
    freed += value->storage->chunk()->size;
    if (value->is_stored()) {
      ++untold_.stores;
      untold_.stored_bytes += choice.is_stored_first ? value->bytes : 0;
    } else {
      ++untold_.drops;
      untold_.dropped_bytes += value->bytes;
    }
    drop(*value, trash);
  }
  const Told told = std::exchange(untold_, {});
  lock.unlock();
  if (trace_is_recording()) tell_trace(told, budget);
  return freed;
}

void Domain::drop(Value& value, Trash& trash) noexcept {
  forget(value);
  trash.add(*value.device, StorageAccess::take_bytes(*value.storage));
  changed_around(value);
}

std::string Domain::explain(const BudgetNode& budget) {
  std::size_t in_use = 0;
  std::uint64_t again = 0, work = 0;
  bool gave_up = false;
  {
    const std::lock_guard lock(RecipeBook::instance().mutex());
    for (const Candidate& candidate : candidates_)
      if (candidate.value->locks > 0) in_use += candidate.value->bytes;
    again = num_again_;
    work = num_work_;
    gave_up = std::exchange(has_given_up_, false);
    if (gave_up) num_again_ = num_work_ = 0;  // Another attempt may do better.
  }
  if (gave_up)
    return fmt::format(
        "eviction gave up: {} operations were repeated for {} of the program, more than {} each; give budget \"{}\" "
        "more",
        again, work, kMostRepeated, budget.name());
  if (spiller_) return explain_spilling(in_use);
  return fmt::format(
      "nothing is left to drop: {} are read by the operations at hand, the rest are variables, inputs, gradients and "
      "others that cannot be recomputed",
      format_bytes(in_use));
}

}  // namespace plimsoll::evict
