// ThreadContext: the context of the calling thread's next operations: scope, tape or tracer, names, category.
//
// Scopes change and restore it; nothing else writes to it. Cost: one thread-local address.
#pragma once

#include <cstdint>

#include "plimsoll/memory/label.h"

namespace plimsoll {

class Interceptor;
class OpObserver;
class ScopeList;
class Tracer;

struct ThreadContext {
  ScopeList* scope = nullptr;          // Innermost tidy scope.
  Interceptor* interceptor = nullptr;  // Innermost tape or tracer.
  OpObserver* observer = nullptr;      // Innermost profile.
  Tracer* tracer = nullptr;            // Innermost; used only while there is an observer.
  const char* name_scope = "";         // Interned.
  std::uint32_t step = 0;
  std::uint32_t site = 0;  // Where the innermost scope starts in the program's source (call_site.h).
  Category category = Category::kActivations;  // Of the results of operations.

  static ThreadContext& current() noexcept {
#if defined(__SANITIZE_ADDRESS__)  // gcc 12's null pointer check mistakes the address of a thread-local for null.
    ThreadContext* here = &current_;
    asm("" : "+r"(here));
    return *here;
#else
    return current_;
#endif
  }

 private:
  static constinit thread_local ThreadContext current_ __attribute__((tls_model("initial-exec")));
};

}  // namespace plimsoll
