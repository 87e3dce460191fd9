// Number: a C++ number used together with a tensor; it takes the tensor's dtype.
//
//   x * 2.f; 1 - x; x % 2                  // the operators of tensors accept one
//   Number(3).to(f16)                      // its bytes as that dtype, for a fill or a kernel
//
// Integers are kept as integers, so that large ones reach i64 tensors unchanged. Conversion follows the casts of
// tensors: to integers by truncation, to boolean by comparing with zero; operators refuse a number that an integer
// dtype cannot represent.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"

namespace plimsoll {

// As casts do: truncates; NaN becomes 0, and what is too large the nearest value.
template <std::integral T>
constexpr T to_integer(double value) noexcept {
  if (value != value) return 0;
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
}

class PLIMSOLL_API Number {
 public:
  template <class T>
  requires(std::integral<T>&& Element<T>) constexpr Number(T value) noexcept
      : integer_(static_cast<std::int64_t>(value)), is_integer_(true), natural_(kDTypeOf<T>) {}
  template <class T>
  requires(std::unsigned_integral<T> && !Element<T>) constexpr Number(T value) noexcept
      : integer_(static_cast<std::int64_t>(value)), is_integer_(true), natural_(i64) {}
  template <std::floating_point T>
  constexpr Number(T value) noexcept
      : floating_(static_cast<double>(value)), is_integer_(false), natural_(std::is_same_v<T, float> ? f32 : f64) {}
  Number(float16 value) noexcept : Number(static_cast<float>(value)) { natural_ = f16; }
  Number(bfloat16 value) noexcept : Number(static_cast<float>(value)) { natural_ = bf16; }

  bool is_integer() const noexcept { return is_integer_; }
  double as_double() const noexcept { return is_integer_ ? static_cast<double>(integer_) : floating_; }
  DType dtype() const noexcept { return natural_; }  // Of the C++ type it was made from.

  // Whether an integer dtype or boolean represents it exactly. True for floats.
  bool fits(DType dtype) const noexcept;
  // The element's bytes, in the low bytes of the result.
  std::uint64_t to(DType dtype) const noexcept;

  // The same number of the same C++ type, to the bit: 0 is not -0, and NaN is NaN.
  bool operator==(const Number& other) const noexcept {
    return natural_ == other.natural_ && is_integer_ == other.is_integer_ &&
           (is_integer_ ? integer_ == other.integer_
                        : std::bit_cast<std::int64_t>(floating_) == std::bit_cast<std::int64_t>(other.floating_));
  }

 private:
  union {
    std::int64_t integer_;
    double floating_;
  };
  bool is_integer_;
  DType natural_;
};

}  // namespace plimsoll
