// crc32c: the Castagnoli checksum of stored bytes, and the masked form that TensorFlow's files store.
//
//   std::uint32_t crc = crc32c(first);
//   crc = crc32c(second, crc);             // of both together
//   mask_crc32c(crc)                       // as stored, so that checksums of bytes that contain checksums stay useful
//
// Thread safety: pure functions. Cost: three interleaved streams of the processor's own instruction (x86-64 with SSE
// 4.2), or table lookups on other processors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::internal {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;
inline std::uint32_t crc32c(std::string_view text, std::uint32_t before = 0) noexcept {
  return crc32c(std::as_bytes(std::span(text)), before);
}
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

// The checksum of two pieces together, from the checksum of each.
std::uint32_t combine_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept;

constexpr std::uint32_t kCrcMaskDelta = 0xa282ead8u;
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) noexcept { return std::rotr(crc, 15) + kCrcMaskDelta; }
constexpr std::uint32_t unmask_crc32c(std::uint32_t masked) noexcept { return std::rotl(masked - kCrcMaskDelta, 15); }

}  // namespace plimsoll::internal
