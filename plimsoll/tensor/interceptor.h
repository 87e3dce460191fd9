// Interceptor: how tapes and tracers see the operations of the thread they are on.
//
// ThreadContext points to the innermost one; each passes on to the one outside of it. OpObserver is the same for those
// who only look: profiles.
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

  // After `op` ran. May throw; the caller then drops the outputs.
  virtual void executed(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) = 0;

  // Whether an operation on these would be remembered. For those whom it costs something to be remembered.
  virtual bool watches(std::span<const Tensor* const> inputs) const;

  Interceptor* outer = nullptr;  // To whom it passes on.
};

class PLIMSOLL_API OpObserver {
 public:
  virtual ~OpObserver();
  virtual void ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
                   std::int64_t nanoseconds) = 0;
};

// While it lives, the thread's operations are seen by nobody or by another: for gradients, and for ops made of ops.
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
