// Processes large data in pieces that stay in the processor's cache from one use to the next.
//   for_each_piece(bytes, kPieceBytes, [&](std::uint64_t at, std::size_t size) { ... });
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::internal {

inline constexpr std::size_t kPieceBytes = 256 * 1024;

template <class F>
void for_each_piece(std::uint64_t bytes, std::size_t piece, F&& f) {
  for (std::uint64_t at = 0; at < bytes; at += piece)
    f(at, static_cast<std::size_t>(std::min<std::uint64_t>(piece, bytes - at)));
}

// Reverses each element: from the other byte order to ours.
inline void swap_bytes(std::span<std::byte> bytes, std::size_t element) noexcept {
  if (element == 1) return;
  for (std::size_t at = 0; at + element <= bytes.size(); at += element)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + element));
}

// Makes every byte 0 or 1: any other value is not a valid bool.
inline void make_bools(std::span<std::byte> bytes) noexcept {
  for (std::byte& byte : bytes) byte = byte == std::byte{0} ? byte : std::byte{1};
}

}  // namespace plimsoll::internal
