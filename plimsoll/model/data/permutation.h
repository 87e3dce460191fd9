// Permutation: the numbers below a count in a shuffled order, each computed on request; nothing is stored.
//
//   const Permutation order(rows, key, pass);
//   order(0), order(1), ...                     // Each number below `rows` once.
//
// A Feistel network over as many bits as the count has, iterated until a number below the count comes out (at most two
// steps on average). Thread safety: any thread. Cost: about 40 ns per number.
#pragma once

#include <bit>
#include <cstdint>

#include "plimsoll/base/philox.h"

namespace plimsoll::internal {

class Permutation {
 public:
  Permutation(std::uint64_t count, std::uint64_t key, std::uint64_t pass) noexcept : count_(count) {
    const int bits = count > 1 ? static_cast<int>(std::bit_width(count - 1)) : 0;
    low_bits_ = bits / 2;
    low_mask_ = mask(bits / 2);
    high_mask_ = mask(bits - bits / 2);
    const Philox random(key, 0, pass);
    for (int round = 0; round < kRounds; ++round) {
      const PhiloxBlock words = random.block(static_cast<std::uint64_t>(round));
      keys_[round] = std::uint64_t{words[0]} << 32 | words[1];
    }
  }

  std::uint64_t operator()(std::uint64_t i) const noexcept {
    do i = step(i);
    while (i >= count_);
    return i;
  }

 private:
  static constexpr int kRounds = 12;
  static constexpr std::uint64_t mask(int bits) noexcept { return (std::uint64_t{1} << bits) - 1; }
  // Finalizer of splitmix64: every bit of the result depends on every bit.
  static constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  std::uint64_t step(std::uint64_t i) const noexcept {
    std::uint64_t low = i & low_mask_, high = i >> low_bits_;
    for (int round = 0; round < kRounds; round += 2) {
      high ^= mix(keys_[round] + low) & high_mask_;
      low ^= mix(keys_[round + 1] + high) & low_mask_;
    }
    return high << low_bits_ | low;
  }

  std::uint64_t count_;
  int low_bits_ = 0;
  std::uint64_t low_mask_ = 0, high_mask_ = 0;
  std::uint64_t keys_[kRounds] = {};
};

}  // namespace plimsoll::internal
