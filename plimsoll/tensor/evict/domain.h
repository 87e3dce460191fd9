// Domain: the recipes of one evicting budget and those below it, and the choice of what to drop to make room.
//
// It drops the value that is cheapest to recover per byte and per work done since its last use. The cost of a value is
// that of its own recipe, of the recipes of the dead and dropped values behind it, and of the dropped values computed
// from it. A value that costs more than a share of everything there is to recompute is dropped only as a last resort.
// Storages smaller than a thousandth of the smallest evicting limit they are charged to stay. Work is counted, not
// measured (Op::cost), so that one thread makes the same choices in every run. Where the budget names a directory,
// values that are cheaper to store there and load, at a nominal speed, are stored first; so are values that cannot be
// recomputed. Thread safety: evict() and explain() as Evictor; everything else under the mutex of the RecipeBook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plimsoll/memory/evictor.h"
#include "plimsoll/tensor/evict/recipe.h"

namespace plimsoll::evict {

class RecipeBook;
class Trash;

class Domain final : public Evictor {
 public:
  static std::shared_ptr<Evictor> make(const EvictorOptions& options);  // The factory of evictors.
  ~Domain() override;
  explicit Domain(const EvictorOptions& options);  // Throws what SpillFile throws.

  std::size_t evict(const BudgetNode& budget, const Arena* arena, std::size_t bytes) override;
  std::string explain(const BudgetNode& budget) override;

  // Held by the thread that recomputes, and taken before the book's mutex. The same thread may take it again when
  // recomputing makes it evict.
  std::recursive_mutex& recomputing() noexcept { return recomputing_; }
  // Called around waiting for that mutex and holding it, with the book locked. begin_turn() throws FailedPrecondition
  // in a child of fork() when a thread that exists only in the parent had the turn. end_turn() returns true when the
  // domain ends with it.
  void begin_turn(std::uint32_t generation);
  bool end_turn() noexcept;

  void add(const Recipe& recipe) noexcept;
  bool remove(const Recipe& recipe) noexcept;  // True when the domain ends with it.
  bool is_worth_dropping(const Chunk& chunk, std::size_t bytes) const noexcept;
  void make_room(std::size_t more);
  void add(Value& value) noexcept;  // Requires a droppable value and make_room(). It counts as used just now.
  void forget(Value& value) noexcept;
  void touch(const Value& value) noexcept;
  void changed_around(const Value& value) noexcept;  // The value was dropped, or is back.

  void drop(Value& value, Trash& trash) noexcept;  // Requires a candidate that is not locked, and room in the trash.

  bool spills() const noexcept { return spiller_ != nullptr && !is_abandoned_; }
  bool remove_slot() noexcept;  // A value with a slot ends or loses the slot. True when the domain ends with it.

  void note_work(std::uint64_t work) noexcept;     // An operation of the program ran.
  void note_again(const Recipe& recipe) noexcept;  // An operation was repeated.
  void note_load(std::size_t bytes) noexcept;

  Domain* next_ended = nullptr;  // Links domains in the trash.

 private:
  struct Candidate {  // What every choice examines.
    Value* value;
    double last_use;  // In units of clock_.
    float bytes;
    float cost;  // Of recovering it; below 0: must be computed.
  };
  // The best so far.
  struct Choice {
    Value* value = nullptr;
    double score = 0;
    int level = 0;
    bool is_stored_first = false;
    bool is_better(int other_level, double other_score) const noexcept {
      return !value || other_level < level || (other_level == level && other_score < score);
    }
  };

  std::string explain_spilling(std::size_t in_use) const;
  static void abandon(Domain* domain) noexcept;  // Call when its budget is gone.
  bool is_ended() const noexcept { return is_abandoned_ && num_recipes_ == 0 && num_turns_ == 0 && num_slots_ == 0; }
  bool is_stuck(std::uint32_t generation) const noexcept { return num_turns_ > 0 && generation_ != generation; }
  Choice choose(const BudgetNode& budget, const Arena* arena) noexcept;
  double storing_cost(const Value& value) const noexcept;  // Infinite when it cannot be stored.
  bool store(Value& value, std::unique_lock<std::mutex>& lock, Trash& trash);
  float cost_of(const Value& value) noexcept;
  void mark(const Value& value) noexcept;

  const std::size_t limit_;
  std::recursive_mutex recomputing_;
  std::vector<Candidate> candidates_;
  std::size_t num_recipes_ = 0;
  bool is_abandoned_ = false;
  std::uint32_t num_turns_ = 0;   // Threads that recompute or wait to.
  std::uint32_t generation_ = 0;  // The fork generation in which the first of them started.
  double clock_ = 0;              // Work done.
  double total_cost_ = 0;         // Of all recipes.
  std::uint64_t num_work_ = 0, num_again_ = 0;
  bool has_given_up_ = false;
  struct Told {  // Reported to traces so far.
    std::uint64_t drops = 0, dropped_bytes = 0, stores = 0, stored_bytes = 0;
    std::uint64_t repeats = 0, loads = 0, loaded_bytes = 0;
  };
  Told untold_;
  static void tell_trace(const Told& told, const BudgetNode& budget);
  struct Spiller;
  const std::unique_ptr<Spiller> spiller_;
  std::size_t num_slots_ = 0;
};

}  // namespace plimsoll::evict
