// Eviction around running an operation: operands stay while they are read, results get a recipe.
//
//   Domain* const domain = current_domain();       // nullptr: the thread's budget does not evict
//   const OperandLocks locks(inputs);              // dropped operands are back now
//   ...
//   RecipeBook::instance().record(*domain, op, inputs, outputs, old, op.cost(...));
//
// Cost without a budget: a load and a branch.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/evict/recipe_book.h"

namespace plimsoll::evict {

Domain* domain_of(const Meter& meter) noexcept;

// The domain that the calling thread's results belong to; nullptr when none of its budgets evicts.
inline Domain* current_domain() {
  const Meter* const budget = ThreadMemory::current().budget;
  return budget ? domain_of(*budget) : nullptr;
}

// Keeps the bytes of droppable operands while it lives. Throws OutOfMemory when a dropped one cannot be recomputed.
class OperandLocks {
 public:
  explicit OperandLocks(std::span<const Tensor* const> tensors) {
    if (tensors.size() > kFew) far_ = std::make_unique<Value*[]>(tensors.size());
    count_ = RecipeBook::instance().lock_all(tensors, list());
  }
  ~OperandLocks() {
    if (count_ > 0) RecipeBook::instance().unlock_all({list(), count_});
  }
  std::span<Value* const> values() const noexcept { return {far_ ? far_.get() : near_.data(), count_}; }
  OperandLocks(const OperandLocks&) = delete;
  OperandLocks& operator=(const OperandLocks&) = delete;

 private:
  static constexpr std::size_t kFew = 8;
  Value** list() noexcept { return far_ ? far_.get() : near_.data(); }
  std::array<Value*, kFew> near_{};
  std::unique_ptr<Value*[]> far_;
  std::size_t count_ = 0;
};

// The old value of an operand that a result overwrites, for RecipeBook::record().
struct OldValue {
  OldValue() = default;
  OldValue(const OldValue&) = delete;
  OldValue& operator=(const OldValue&) = delete;
  ~OldValue() {
    if (value) RecipeBook::instance().let_go(*value);
  }
  Value* value = nullptr;
};

}  // namespace plimsoll::evict
