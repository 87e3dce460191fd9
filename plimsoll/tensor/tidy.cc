#include "plimsoll/tensor/tidy.h"

#include <cstdlib>
#include <string>

#include "plimsoll/base/log.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

void refuse_other_thread(const char* what) noexcept {
  // The thread that made it keeps a pointer to it: this is the last chance to say why the program ends.
  log_message(LogLevel::error,
              std::string(what) + ": ended on another thread than it was made on; end it where it was made");
  std::abort();
}

TidyScope::TidyScope(CallSite site) noexcept : site_before_(ThreadContext::current().site) {
  ThreadContext& context = ThreadContext::current();
  if (const std::uint32_t number = site_number(site)) context.site = number;
  list_.outer = std::exchange(context.scope, &list_);
}

TidyScope::~TidyScope() {
  ThreadContext& context = ThreadContext::current();
  ScopeList** place = &context.scope;
  if (*place != &list_) [[unlikely]] {
    while (*place && *place != &list_) place = &(*place)->outer;
    if (!*place) refuse_other_thread("TidyScope");
    log_message(LogLevel::error, "TidyScope: ended before a scope inside of it");
  }
  *place = list_.outer;
  context.site = site_before_;
  list_.end(*place);
}

Tensor keep(const Tensor& tensor) {
  if (tensor.record()) tensor.record()->set(TensorRecord::kKept);
  return tensor;
}

}  // namespace plimsoll
