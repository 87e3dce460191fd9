// Philox: random numbers that are a function of a key and a position, so any of them can be drawn again.
//
//   Philox random(seed);                  // Position 0.
//   float u = random.uniform();           // [0, 1)
//   float g = random.normal();            // Mean 0, standard deviation 1.
//   Philox again(seed, random.offset());  // Continues at the next whole block.
//   random.block(7);                      // The four words at position 7 from the start, in any order, on any thread.
//
// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
// Thread safety: block() and the free functions from any thread; a Philox that is drawn from, one thread at a time.
// Cost: about 10 ns for four words.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// The generator itself: ten rounds over a 128-bit counter under a 64-bit key.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// [0, 1), a multiple of 2^-24 (2^-53 for double), all equally likely.
constexpr float uniform_float(std::uint32_t word) noexcept { return static_cast<float>(word >> 8) * 0x1p-24f; }
constexpr double uniform_double(std::uint32_t low, std::uint32_t high) noexcept {
  return static_cast<double>(((std::uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// Two independent normal numbers from two words (Box and Muller's transform). Always finite.
PLIMSOLL_API std::pair<float, float> normal_floats(std::uint32_t a, std::uint32_t b) noexcept;

class PLIMSOLL_API Philox {
 public:
  // `offset` counts blocks of four words. Streams with different `stream` numbers never overlap.
  explicit Philox(std::uint64_t key, std::uint64_t offset = 0, std::uint64_t stream = 0) noexcept
      : key_(key), offset_(offset), stream_(stream) {}

  std::uint64_t key() const noexcept { return key_; }
  std::uint64_t offset() const noexcept { return offset_; }  // The first block not drawn from.
  std::uint64_t stream() const noexcept { return stream_; }

  // The block at a position of this key and stream; does not advance.
  PhiloxBlock block(std::uint64_t position) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                      {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
  }

  // These advance the position.
  PhiloxBlock next_block() noexcept { return block(offset_++); }
  std::uint32_t next_word() noexcept;
  float uniform() noexcept { return uniform_float(next_word()); }
  float normal() noexcept;
  // An integer in [0, bound), without bias. Requires bound > 0.
  std::uint32_t below(std::uint32_t bound) noexcept;
  // Skips whole blocks and the rest of the current one.
  void skip(std::uint64_t blocks) noexcept;

 private:
  std::uint64_t key_, offset_, stream_;
  PhiloxBlock words_{};  // The block being drawn from.
  int words_left_ = 0;
  float second_normal_ = 0;  // The transform makes two at once; this is the second.
  bool has_second_normal_ = false;
};

}  // namespace plimsoll::internal
