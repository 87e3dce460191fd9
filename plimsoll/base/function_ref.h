// FunctionRef: a callable passed down the stack without copying it and without allocating.
//
//   void each_block(FunctionRef<void(std::size_t bytes)> visit);
//   each_block([&](std::size_t bytes) { total += bytes; });
//
// Owns nothing: the callable must outlive the call. Two pointers; a call costs one indirect jump.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace plimsoll {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<R, F&, Args...> &&
           !std::is_function_v<std::remove_reference_t<F>>) FunctionRef(F&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace plimsoll
