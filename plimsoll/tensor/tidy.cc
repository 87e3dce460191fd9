#include "plimsoll/tensor/tidy.h"

#include "plimsoll/base/log.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

TidyScope::TidyScope() noexcept {
  ThreadContext& context = ThreadContext::current();
  list_.outer = std::exchange(context.scope, &list_);
}

TidyScope::~TidyScope() {
  ThreadContext& context = ThreadContext::current();
  ScopeList** place = &context.scope;
  while (*place && *place != &list_) place = &(*place)->outer;
  if (place != &context.scope)
    log_message(LogLevel::error, "TidyScope: ended before a scope inside of it, or on another thread");
  if (*place) *place = list_.outer;
  list_.end(*place);
}

Tensor keep(const Tensor& tensor) {
  if (tensor.record()) tensor.record()->set(TensorRecord::kKept);
  return tensor;
}

}  // namespace plimsoll
