// Interceptor: lets tapes and tracers see the operations of the thread they are on.
//
// ThreadContext points to the innermost one; each passes operations on to the one outside it. OpObserver does the same
// for pure observers such as profiles.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

class PLIMSOLL_API Interceptor {
 public:
  Interceptor() = default;
  Interceptor(const Interceptor&) = delete;
  Interceptor& operator=(const Interceptor&) = delete;
  virtual ~Interceptor();

  // Called after `op` ran. May throw; the caller then drops the outputs.
  virtual void executed(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) = 0;

  // Whether an operation on these inputs would be recorded. For callers to whom being recorded costs something.
  virtual bool watches(std::span<const Tensor* const> inputs) const;

  Interceptor* outer = nullptr;  // The interceptor it passes operations on to.
};

class PLIMSOLL_API OpObserver {
 public:
  virtual ~OpObserver();
  virtual void ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
                   std::int64_t nanoseconds) = 0;
};

// While it lives, the thread's operations are seen by nobody, or by another interceptor: for gradients, and for ops
// made of ops.
class PLIMSOLL_API InterceptWith {
 public:
  explicit InterceptWith(Interceptor* interceptor) noexcept : before_(ThreadContext::current().interceptor) {
    ThreadContext::current().interceptor = interceptor;
  }
  ~InterceptWith() { ThreadContext::current().interceptor = before_; }
  InterceptWith(const InterceptWith&) = delete;
  InterceptWith& operator=(const InterceptWith&) = delete;

 private:
  Interceptor* before_;
};

}  // namespace plimsoll
