// divide_up and round_up: how many units hold n, and the size of that many units.
//
//   divide_up(10, 4) == 3; round_up(10, 4) == 12; round_up(12, 4) == 12
#pragma once

#include <concepts>
#include <type_traits>

namespace plimsoll::internal {

// Requires n >= 0, unit > 0, and that n + unit fits T.
template <std::integral T>
constexpr T divide_up(T n, std::type_identity_t<T> unit) noexcept {
  return (n + unit - 1) / unit;
}

template <std::integral T>
constexpr T round_up(T n, std::type_identity_t<T> unit) noexcept {
  return divide_up(n, unit) * unit;
}

}  // namespace plimsoll::internal
