// is_recorded: whether a gradient through operations on x may be computed, so that ops keep what it needs.
#pragma once

#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

// True under a tape, and in a graph, whose gradients may be requested later.
inline bool is_recorded(const Tensor& x) noexcept {
  const ThreadContext& context = ThreadContext::current();
  return context.interceptor || context.tracer || (!x.is_empty_handle() && is_symbolic(x));
}

}  // namespace plimsoll::internal
