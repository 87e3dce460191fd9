#include "plimsoll/base/philox.h"

#include <cmath>
#include <numbers>

namespace plimsoll::internal {

std::pair<float, float> normal_floats(std::uint32_t a, std::uint32_t b) noexcept {
  const float radius =
      std::sqrt(-2.f * std::log((static_cast<float>(a >> 8) + 1.f) * 0x1p-24f));  // The argument is in (0, 1].
  const float angle = 2.f * std::numbers::pi_v<float> * uniform_float(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::uint32_t Philox::next_word() noexcept {
  if (words_left_ == 0) {
    words_ = next_block();
    words_left_ = 4;
  }
  return words_[static_cast<std::size_t>(4 - words_left_--)];
}

float Philox::normal() noexcept {
  if (std::exchange(has_second_normal_, false)) return second_normal_;
  const std::uint32_t a = next_word();
  const auto [first, second] = normal_floats(a, next_word());
  second_normal_ = second;
  has_second_normal_ = true;
  return first;
}

// Lemire's method: the high half of a product is in range; the few low halves that would favour some results are
// drawn again.
std::uint32_t Philox::below(std::uint32_t bound) noexcept {
  const std::uint32_t unfair = (0u - bound) % bound;
  for (;;) {
    const std::uint64_t product = std::uint64_t{next_word()} * bound;
    if (static_cast<std::uint32_t>(product) >= unfair) return static_cast<std::uint32_t>(product >> 32);
  }
}

void Philox::skip(std::uint64_t blocks) noexcept {
  offset_ += blocks;
  words_left_ = 0;
  has_second_normal_ = false;
}

}  // namespace plimsoll::internal
