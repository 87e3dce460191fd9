// float16 and bfloat16: the two 16-bit floating types, for storage. Arithmetic happens in float.
//
//   float16 h(1.5f);          // Rounds to nearest, ties to even; too large becomes infinity; NaN stays NaN.
//   float y = h * 2.0f;       // Converts to float exactly, implicitly.
//   float16::from_bits(0x3c00) == 1.0f
//
// Converting from double rounds once, not twice. Integers are converted through double.
// Thread safety: values only. Cost: a few integer instructions per conversion; needs no special hardware.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

namespace plimsoll {

namespace half_detail {

// IEEE binary16 bits of the nearest value.
constexpr std::uint16_t to_float16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and above.
  if (magnitude >= 0x38800000u) {                                                   // Normal: 2^-14 and above.
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);    // May carry into infinity.
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  const std::uint32_t shift = 126u - (magnitude >> 23);  // Subnormal: a multiple of 2^-24.
  if (shift > 24u) return static_cast<std::uint16_t>(sign);
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t rounding = (1u << (shift - 1u)) - 1u + ((mantissa >> shift) & 1u);
  return static_cast<std::uint16_t>(sign | ((mantissa + rounding) >> shift));
}

constexpr float from_float16_bits(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;  // Exact.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

constexpr std::uint16_t to_bfloat16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

constexpr float from_bfloat16_bits(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The float next to `value` with the last bit set unless the conversion is exact ("round to odd"): rounding the
// result once more, to fewer bits, equals rounding `value` directly.
constexpr float to_odd_float(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1u) return nearest;
  const bool too_large = (value < 0 ? -back : back) > (value < 0 ? -value : value);
  return std::bit_cast<float>(too_large ? bits - 1u : bits + 1u);
}

}  // namespace half_detail

// IEEE binary16: 5 exponent bits, 10 mantissa bits. Largest finite value 65504.
class float16 {
 public:
  float16() = default;  // Like float: no value unless value-initialised.
  explicit constexpr float16(float value) noexcept : bits_(half_detail::to_float16_bits(value)) {}
  explicit constexpr float16(double value) noexcept : float16(half_detail::to_odd_float(value)) {}
  template <std::integral T>
  explicit constexpr float16(T value) noexcept : float16(static_cast<double>(value)) {}
  static constexpr float16 from_bits(std::uint16_t bits) noexcept {
    float16 result{};
    result.bits_ = bits;
    return result;
  }

  constexpr operator float() const noexcept { return half_detail::from_float16_bits(bits_); }
  constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  std::uint16_t bits_;
};

// The upper half of a float: 8 exponent bits, 7 mantissa bits.
class bfloat16 {
 public:
  bfloat16() = default;  // Like float: no value unless value-initialised.
  explicit constexpr bfloat16(float value) noexcept : bits_(half_detail::to_bfloat16_bits(value)) {}
  explicit constexpr bfloat16(double value) noexcept : bfloat16(half_detail::to_odd_float(value)) {}
  template <std::integral T>
  explicit constexpr bfloat16(T value) noexcept : bfloat16(static_cast<double>(value)) {}
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 result{};
    result.bits_ = bits;
    return result;
  }

  constexpr operator float() const noexcept { return half_detail::from_bfloat16_bits(bits_); }
  constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  std::uint16_t bits_;
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

}  // namespace plimsoll

// NOLINTBEGIN(readability-identifier-naming): the standard's names.
template <>
struct std::numeric_limits<plimsoll::float16> : std::numeric_limits<float> {
  using T = plimsoll::float16;
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  static constexpr T min() noexcept { return T::from_bits(0x0400); }
  static constexpr T max() noexcept { return T::from_bits(0x7bff); }
  static constexpr T lowest() noexcept { return T::from_bits(0xfbff); }
  static constexpr T epsilon() noexcept { return T::from_bits(0x1400); }
  static constexpr T round_error() noexcept { return T::from_bits(0x3800); }
  static constexpr T infinity() noexcept { return T::from_bits(0x7c00); }
  static constexpr T quiet_NaN() noexcept { return T::from_bits(0x7e00); }
  static constexpr T signaling_NaN() noexcept { return T::from_bits(0x7d00); }
  static constexpr T denorm_min() noexcept { return T::from_bits(0x0001); }
};

template <>
struct std::numeric_limits<plimsoll::bfloat16> : std::numeric_limits<float> {
  using T = plimsoll::bfloat16;
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr T min() noexcept { return T::from_bits(0x0080); }
  static constexpr T max() noexcept { return T::from_bits(0x7f7f); }
  static constexpr T lowest() noexcept { return T::from_bits(0xff7f); }
  static constexpr T epsilon() noexcept { return T::from_bits(0x3c00); }
  static constexpr T round_error() noexcept { return T::from_bits(0x3f00); }
  static constexpr T infinity() noexcept { return T::from_bits(0x7f80); }
  static constexpr T quiet_NaN() noexcept { return T::from_bits(0x7fc0); }
  static constexpr T signaling_NaN() noexcept { return T::from_bits(0x7fa0); }
  static constexpr T denorm_min() noexcept { return T::from_bits(0x0001); }
};
// NOLINTEND(readability-identifier-naming)
