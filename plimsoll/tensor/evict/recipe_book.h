// RecipeBook: all recipes and values of the process, and what they do to the storages they refer to.
//
//   Value* read = book.lock(storage);              // its bytes are back, and stay until unlock()
//   book.record(domain, op, inputs, outputs, ...); // from now on the outputs may be dropped
//
// There is one, never destroyed. Thread safety: every public method may be called from any thread, outside the gate.
// One mutex guards everything; it is held briefly and taken before those of the memory layer. A recomputation runs
// without it, under its domain's mutex, which is taken first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "plimsoll/tensor/evict/recipe.h"
#include "plimsoll/tensor/evict/trash.h"

namespace plimsoll {

class Tensor;

namespace evict {

class RecipeBook {
 public:
  static constexpr std::uint32_t kMostDead = 64;  // The most recipes of dead values behind one value.

  static RecipeBook& instance();

  // Recovers the bytes and never lets them be dropped again. Throws OutOfMemory; the storage then stays dropped.
  void settle(Storage& storage);
  // Recovers the bytes and keeps them until unlock(); nullptr when there is nothing to unlock.
  Value* lock(Storage& storage);
  void lock_again(Value& value) noexcept;
  void unlock(Value& value) noexcept;
  // The last reference is gone. False: the storage stays for now, without references.
  bool release(Storage& storage) noexcept;
  // Ends the recipes that read it, after recovering the dropped values that need them. Throws OutOfMemory.
  void about_to_write(Storage& storage);

  // Locks all operands of an operation at once, leaving out values that need no lock. Throws as lock(); then none is
  // locked. `locked` has room for all.
  std::size_t lock_all(std::span<const Tensor* const> tensors, Value** locked);
  void unlock_all(std::span<Value* const> values) noexcept;

  // The result is about to overwrite an operand. False: it must not, because dropped values need the operand or someone
  // other than the holder of `own` is reading it. `old` is what it held, if that can be recomputed; it is held for
  // record() until let_go().
  bool give_up(Storage& storage, std::span<Value* const> own, Value*& old) noexcept;
  void let_go(Value& old) noexcept;
  // The op has run, with this much work (Op::cost). Records nothing when the op cannot be repeated.
  void record(Domain& domain, const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
              Value* old, std::uint64_t work) noexcept;
  // An op that must not be repeated has run: where the domain spills, its results may be stored.
  void offer(Domain& domain, std::span<const Tensor> outputs, std::uint64_t work) noexcept;
  // Drops the bytes now, if they may be dropped. For tests.
  bool drop(Storage& storage);

  std::mutex& mutex() noexcept { return mutex_; }
  std::uint64_t new_walk() noexcept { return ++walk_; }  // A mark that no recipe has yet. Requires the mutex.

 private:
  friend class Domain;
  friend class Recomputation;
  using Lock = std::unique_lock<std::mutex>;

  class Turn;

  RecipeBook();
  void bring_back(Value& value, Lock& lock);
  bool load(Value& value, Lock& lock);
  void offer(Domain& domain, std::span<const Tensor> outputs) noexcept;
  void become_leaf(Value& value) noexcept;
  void bury(Value& value, Trash& trash) noexcept;
  Value* find_needing(Value& leaf) noexcept;
  bool is_long_above(Value& value) noexcept;
  bool is_long_below(const Value& value) noexcept;
  void end_long_readers(Value& value, Trash& trash) noexcept;
  void leave_maker(Value& value, Trash& trash) noexcept;
  void end_readers(Value& leaf, Trash& trash) noexcept;
  void end_if_unneeded(Value& value, Trash& trash) noexcept;
  void end_queued(Trash& trash) noexcept;
  void queue(Value& value) noexcept;
  void become_dead(Value& value, Trash& trash) noexcept;
  void leave_storage(Value& value) noexcept;
  void become_orphan(Value& value) noexcept;
  void no_orphan(Value& value) noexcept;
  std::size_t end_orphans(Trash& trash) noexcept;
  std::size_t end_orphan(Value& value, Trash& trash) noexcept;
  void remove_from_domain(Recipe& recipe, Trash& trash) noexcept;
  bool can_record(const Domain& domain, const Op& op, std::span<const Tensor* const> inputs,
                  std::span<const Tensor> outputs, const Value* old) noexcept;
  Value& value_or_leaf(Storage& storage);
  void add_output(Domain& domain, Recipe& recipe, std::uint32_t index, const Tensor& tensor, Value* value) noexcept;

  std::mutex mutex_;
  std::uint64_t walk_ = 0;
  std::uint32_t generation_ = 0;  // Forks between the first process and this one.
  Value* queued_ = nullptr;
  Value* orphans_ = nullptr;
};

}  // namespace evict
}  // namespace plimsoll
