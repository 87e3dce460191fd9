// Recomputation: recovers a dropped value by running its recipe again, and the recipes of what it was computed from.
//
// It uses a work list instead of recursion: chains may be thousands of recipes long. While a recipe waits for an
// operand, the operands it already has stay; when that leaves too little room they are released and recovered again
// later. Dead values have bytes only until the recipe that needs them has run. A value that took more than
// RecipeBook::kMostDead of them becomes a leaf, and inputs without holders end once nothing dropped needs them. Tapes,
// scopes and profiles see none of it. When it throws, everything is as before except for values recovered on the way.
// Thread safety: one thread, which holds Domain::recomputing() and the book's lock; the latter is released while ops
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "plimsoll/tensor/evict/recipe_book.h"

namespace plimsoll::evict {

class Domain;

class Recomputation {
 public:
  Recomputation(RecipeBook& book, Domain& domain, std::unique_lock<std::mutex>& lock)
      : book_(book), domain_(domain), lock_(lock) {}
  // Requires a dropped value that the caller holds. Throws OutOfMemory, naming the operation.
  void run(Value& target);

 private:
  struct Frame {
    Recipe* recipe;
    std::uint32_t locked;  // How many of its inputs are locked.
  };
  struct Work;  // Views, labels and blocks of one run.

  void plan(Value& target);
  void step();
  bool load(Value& value);
  void unlock(Frame& frame, bool even_pending) noexcept;
  bool unlock_waiting() noexcept;
  void execute(Recipe& recipe);
  void publish(Recipe& recipe, Work& work) noexcept;
  void hold(Value& value);
  void keep_long_ones(Value& target) noexcept;
  void finish(Value& target) noexcept;
  void clear_trash() noexcept;

  RecipeBook& book_;
  Domain& domain_;
  std::unique_lock<std::mutex>& lock_;
  Trash trash_;
  std::vector<Frame> frames_;
  std::vector<Value*> held_;  // Values in the plan, and orphans that were read.
  std::size_t num_planned_ = 0, num_runs_ = 0;
};

}  // namespace plimsoll::evict
