// Shared by the tests of convolutions, pooling and batch normalisation: aligned scratch with a guard behind it, and
// random-looking values.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {

// `bytes` of scratch, aligned to 64, filled with bytes that make floats NaN. is_kept() is false when a kernel wrote
// behind them.
class TestScratch {
 public:
  explicit TestScratch(std::size_t bytes) : bytes_(bytes), lines_(bytes / 64 + 3) {
    std::memset(lines_.data()->bytes, 0xff, lines_.size() * 64);
  }
  operator std::span<std::byte>() { return {lines_.data()->bytes, bytes_}; }
  bool is_kept() const {
    for (std::size_t i = bytes_; i < lines_.size() * 64; ++i)
      if (lines_.data()->bytes[i] != std::byte{0xff}) return false;
    return true;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::size_t bytes_;
  std::vector<Line> lines_;
};

// Numbers between -1 and 1 without a pattern.
template <Element T>
TestTensor scattered(const Shape& shape, std::uint64_t seed) {
  return TestTensor::from<T>(shape, [&](std::int64_t i) {
    std::uint64_t bits = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return static_cast<T>(static_cast<double>((bits ^ (bits >> 31)) >> 40) / 8388608.0 - 1.0);
  });
}

inline bool same_bits(const TestTensor& a, const TestTensor& b) {
  return a.view().nbytes() == b.view().nbytes() &&
         std::memcmp(a.view().bytes(), b.view().bytes(), a.view().nbytes()) == 0;
}

}  // namespace plimsoll
