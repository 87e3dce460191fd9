// tidy, keep, dispose, TidyScope: free tensors when the work that made them is done.
//
//   Tensor y = tidy([&] { return (x - x.mean()) / norm(x, 2); });    // only y is left
//   keep(t);                                   // no scope releases t from now on; dispose() does
//   dispose(tensors);                          // a tensor, or anything that holds some
//   { TidyScope scope; ...; result = scope.keep(h * 2.f); }          // the same without a function
//
// When a scope ends, by return or by exception, every tensor made in it on its thread is disposed, even where a handle
// to it is left over, except those that were returned (they then belong to the enclosing scope) or kept. Variables and
// tensors made before are not touched. Scopes nest. visit_tensors.h lists what can be returned.
// Thread safety: a scope belongs to the thread that made it; every thread has its own scopes. A TidyScope that ends on
// the same thread before one inside it ends alone and is logged; on another thread it ends the program.
// Cost: about 10 ns, and about 5 ns for each tensor made inside.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/base/call_site.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/scope_list.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/visit_tensors.h"

namespace plimsoll {

// Ends the program with a message: the scope or tape being destroyed belongs to another thread.
[[noreturn]] PLIMSOLL_API void refuse_other_thread(const char* what) noexcept;

class PLIMSOLL_API TidyScope {
 public:
  // Everything made inside carries the place where the scope starts, in every memory report.
  explicit TidyScope(CallSite site = CallSite::here()) noexcept;
  ~TidyScope();
  TidyScope(const TidyScope&) = delete;
  TidyScope& operator=(const TidyScope&) = delete;

  // Passes the tensors inside `value` to the enclosing scope, and returns it.
  template <class T>
  T keep(T value) {
    visit_all_tensors(value, [this](const Tensor& tensor) {
      if (tensor.record()) list_.hand_on(*tensor.record());
    });
    return value;
  }

 private:
  ScopeList list_;
  std::uint32_t site_before_;
};

template <class F>
auto tidy(F&& f, CallSite site = CallSite::here()) {
  TidyScope scope(site);
  if constexpr (std::is_void_v<std::invoke_result_t<F>>)
    std::forward<F>(f)();
  else
    return scope.keep(std::remove_cvref_t<std::invoke_result_t<F>>(std::forward<F>(f)()));
}

// The same; tensors made inside carry the name in their scope.
template <class F>
auto tidy(std::string_view name, F&& f, CallSite site = CallSite::here()) {
  const NameScope named(name, site);
  return tidy(std::forward<F>(f), site);
}

// No scope releases it from now on. Returns it. Keeping a disposed tensor does nothing.
PLIMSOLL_API Tensor keep(const Tensor& tensor);

// Disposes of every tensor inside: of a tensor, a container of some, a tree, ... Numbers and text are ignored.
template <class T>
void dispose(const T& value) {
  visit_all_tensors(value, [](const Tensor& tensor) { tensor.dispose(); });
}

}  // namespace plimsoll
