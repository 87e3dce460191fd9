// Codes of 1, 2, 4 or 8 bits, packed: 8 codes take as many bytes as one has bits. Wider codes (32) are not packed.
#pragma once

#include <cstdint>

#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {

// Bits of a code below `values`.
constexpr int bits_of_code(std::int64_t values) noexcept {
  return values <= 2 ? 1 : values <= 4 ? 2 : values <= 16 ? 4 : values <= 256 ? 8 : 32;
}

constexpr std::int64_t bytes_of_codes(std::int64_t n, int bits) noexcept {
  return bits == 32 ? n * 4 : divide_up(n, 8) * bits;
}

// The lowest `bits` of every part of `part` bits.
constexpr std::uint64_t low_bits(int bits, int part) noexcept {
  std::uint64_t mask = 0;
  for (int at = 0; at < 64; at += part) mask |= ((std::uint64_t{1} << bits) - 1) << at;
  return mask;
}

// 8 codes, one in each byte, as 8 codes side by side, and back.
template <int kBits>
constexpr std::uint64_t joined(std::uint64_t group) noexcept {
  constexpr int kGap = 8 - kBits;
  group &= low_bits(kBits, 8);
  group = (group | group >> kGap) & low_bits(2 * kBits, 16);
  group = (group | group >> 2 * kGap) & low_bits(4 * kBits, 32);
  return group | group >> 4 * kGap;
}
template <int kBits>
constexpr std::uint64_t spread(std::uint64_t group) noexcept {
  constexpr int kGap = 8 - kBits;
  group = (group | group << 4 * kGap) & low_bits(4 * kBits, 32);
  group = (group | group << 2 * kGap) & low_bits(2 * kBits, 16);
  return (group | group << kGap) & low_bits(kBits, 8);
}

}  // namespace plimsoll::internal
