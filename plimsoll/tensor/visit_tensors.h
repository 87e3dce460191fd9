// Finds the tensors inside a value: in containers, tuples, optionals, variants, trees and plain structs, at any depth.
//
//   visit_all_tensors(result, [&](const Tensor& tensor) { ... });
//
// It handles tensors; numbers, enumerations and text; anything that can be iterated over; tuples, pairs, optionals,
// variants and owning pointers; aggregates of up to 16 members; and your own types if a function
//   template <class F> void visit_tensors(const Mine& value, F&& f) { f(value.tensor_); }
// is found by argument-dependent lookup. Anything else that could hide a tensor does not compile. All of it is resolved
// at compile time.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace visit_detail {

template <class T>
inline constexpr bool kNever = false;

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_null_pointer_v<T> ||
    std::convertible_to<const T&, std::string_view> || std::same_as<T, float16> || std::same_as<T, bfloat16> ||
    std::same_as<T, Shape> || std::same_as<T, std::monostate> || std::same_as<T, Number>;

struct Ignore {
  void operator()(const Tensor&) const {}
};
template <class T>
concept Customised = requires(const T& value, Ignore f) {
  visit_tensors(value, f);
};
template <class T>
concept Range = requires(const T& value) {
  value.begin();
  value.end();
};
template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept OwningPointer = requires(const T& value) {
  typename T::element_type;
  value.get();
  *value;
};
template <class T>
concept Coroutine = requires {
  typename T::promise_type;
};
template <class T>
inline constexpr bool kIsReference = false;
template <class T>
inline constexpr bool kIsReference<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

struct Anything {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}
template <class T, std::size_t N = 17>
constexpr std::size_t num_members() {
  if constexpr (takes<T>(std::make_index_sequence<N>{}))
    return N;
  else if constexpr (N == 0)
    return 0;
  else
    return num_members<T, N - 1>();
}

template <class T, class F>
void visit(const T& value, F& f);

// f(member) for each member of an aggregate.
template <class T, class F>
void for_each_member(const T& value, F&& f) {
  constexpr std::size_t kMembers = num_members<T>();
  static_assert(kMembers <= 16, "tidy: an aggregate of more than 16 members; write visit_tensors(const T&, f) for it");
  const auto each = [&f](const auto&... members) { (f(members), ...); };
#define PLIMSOLL_MEMBERS(count, ...)      \
  else if constexpr (kMembers == count) { \
    const auto& [__VA_ARGS__] = value;    \
    each(__VA_ARGS__);                    \
  }
  if constexpr (kMembers == 0) {
  }
  PLIMSOLL_MEMBERS(1, a)
  PLIMSOLL_MEMBERS(2, a, b)
  PLIMSOLL_MEMBERS(3, a, b, c)
  PLIMSOLL_MEMBERS(4, a, b, c, d)
  PLIMSOLL_MEMBERS(5, a, b, c, d, e)
  PLIMSOLL_MEMBERS(6, a, b, c, d, e, g)
  PLIMSOLL_MEMBERS(7, a, b, c, d, e, g, h)
  PLIMSOLL_MEMBERS(8, a, b, c, d, e, g, h, i)
  PLIMSOLL_MEMBERS(9, a, b, c, d, e, g, h, i, j)
  PLIMSOLL_MEMBERS(10, a, b, c, d, e, g, h, i, j, k)
  PLIMSOLL_MEMBERS(11, a, b, c, d, e, g, h, i, j, k, l)
  PLIMSOLL_MEMBERS(12, a, b, c, d, e, g, h, i, j, k, l, m)
  PLIMSOLL_MEMBERS(13, a, b, c, d, e, g, h, i, j, k, l, m, n)
  PLIMSOLL_MEMBERS(14, a, b, c, d, e, g, h, i, j, k, l, m, n, o)
  PLIMSOLL_MEMBERS(15, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p)
  PLIMSOLL_MEMBERS(16, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q)
#undef PLIMSOLL_MEMBERS
}

template <class T, class F>
void visit(const T& value, F& f) {
  if constexpr (std::same_as<T, Tensor>) {
    f(value);
  } else if constexpr (Customised<T>) {
    visit_tensors(value, f);
  } else if constexpr (Plain<T>) {
  } else if constexpr (Coroutine<T>) {
    static_assert(kNever<T>, "tidy: the callable returns a Task; make a TidyScope inside of the coroutine instead");
  } else if constexpr (kIsReference<T>) {
    static_assert(kNever<T>, "tidy: what a std::reference_wrapper refers to may be disposed at the end; return a copy");
  } else if constexpr (kIsVariant<T>) {
    if (!value.valueless_by_exception()) std::visit([&f](const auto& held) { visit(held, f); }, value);
  } else if constexpr (kIsOptional<T>) {
    if (value) visit(*value, f);
  } else if constexpr (Range<T>) {
    for (auto it = value.begin(); it != value.end(); ++it) {
      const auto& element = *it;  // vector<bool> returns a value, not a reference.
      visit(element, f);
    }
  } else if constexpr (TupleLike<T>) {
    std::apply([&f](const auto&... parts) { (visit(parts, f), ...); }, value);
  } else if constexpr (OwningPointer<T>) {
    if (value) visit(*value, f);
  } else if constexpr (std::is_aggregate_v<T>) {
    for_each_member(value, [&f](const auto& member) { visit(member, f); });
  } else {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                  "tidy: this type could hide a tensor; write visit_tensors(const T&, f) for it, or return what is "
                  "inside");
  }
}

}  // namespace visit_detail

template <class T, class F>
void visit_all_tensors(const T& value, F&& f) {
  visit_detail::visit(value, f);
}

}  // namespace plimsoll
