// Recomputation: brings a dropped value back by running its recipe again, and those of what it was computed from.
//
// A list of work, not a recursion: chains may be thousands of recipes long. While a recipe waits for an operand, those
// that are there already stay; when that leaves too little room they are given up and found again later. Dead values
// have bytes only until the recipe that needs them has run. What took more than RecipeBook::kMostDead of them becomes a
// leaf, and inputs that nobody holds end once nothing dropped needs them. No tape, scope or profile sees any of it.
// When it throws, all is as before but for values that came back on the way.
// Thread safety: one thread, that holds Domain::recomputing() and the book's lock, which is released while ops run.
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
    std::uint32_t locked;  // So many of its inputs.
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
  std::vector<Value*> held_;  // Values that the plan knows, and orphans that were read.
  std::size_t num_planned_ = 0, num_runs_ = 0;
};

}  // namespace plimsoll::evict
