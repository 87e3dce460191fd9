// is_recorded: whether a gradient may be asked for of what is done to x, so that ops keep what it needs.
#pragma once

#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

// Under a tape, and in a graph, whose gradients are asked for later.
inline bool is_recorded(const Tensor& x) noexcept {
  const ThreadContext& context = ThreadContext::current();
  return context.interceptor || context.tracer || (!x.is_empty_handle() && is_symbolic(x));
}

}  // namespace plimsoll::internal
