// Guards of ThreadContext: each changes a part of the calling thread's context while it lives, then restores it.
//
//   const OutsideTidyScopes outside;                      // tensors made now belong to no tidy scope
//   const CategoryGuard gradients(Category::kGradients);  // results of operations are gradients
//   const Untracked inputs;                               // no tidy scope, no tape, category `inputs`
//   const NameScopeGuard names;                           // restores the name scope, whatever sets it below
//
// Thread safety: a guard belongs to the thread that made it. Cost: a load and two stores.
#pragma once

#include <type_traits>
#include <utility>

#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll::internal {

template <auto kMember>
class ContextGuard {
 public:
  using Value = std::remove_reference_t<decltype(std::declval<ThreadContext&>().*kMember)>;

  ContextGuard() noexcept : before_(ThreadContext::current().*kMember) {}  // Changes nothing; restores at its end.
  explicit ContextGuard(Value value) noexcept : before_(std::exchange(ThreadContext::current().*kMember, value)) {}
  ~ContextGuard() { ThreadContext::current().*kMember = before_; }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  const Value before_;
};

using CategoryGuard = ContextGuard<&ThreadContext::category>;
using NameScopeGuard = ContextGuard<&ThreadContext::name_scope>;
using SiteGuard = ContextGuard<&ThreadContext::site>;

struct OutsideTidyScopes : ContextGuard<&ThreadContext::scope> {
  OutsideTidyScopes() noexcept : ContextGuard(nullptr) {}
};

// Tensors belong to no tidy scope and have this category; tapes still see operations.
class MakingTensors {
 public:
  explicit MakingTensors(Category category) noexcept : category_(category) {}

 private:
  const OutsideTidyScopes outside_;
  const CategoryGuard category_;
};

// Tensors belong to no tidy scope, are seen by no tape, and have this category.
class Untracked {
 public:
  explicit Untracked(Category category = Category::kInputs) noexcept : tensors_(category) {}

 private:
  const MakingTensors tensors_;
  const InterceptWith unseen_{nullptr};
};

}  // namespace plimsoll::internal
