#include "plimsoll/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace plimsoll::internal {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78u;  // Reflected.

// [k][b]: the checksum of byte b followed by k zero bytes, with a register that is not inverted before or after.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t zeros = 1; zeros < 8; ++zeros)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[zeros - 1][byte];
      tables[zeros][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}

// Filled at first use: as constants these tables take the compiler ten seconds.
const Tables& tables() noexcept {
  static const Tables filled = make_tables();
  return filled;
}

std::uint64_t load_word(const std::byte* from) noexcept {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  const Tables& table = tables();
  std::uint32_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  if constexpr (std::endian::native == std::endian::little)
    for (; left >= 8; at += 8, left -= 8) {
      const std::uint64_t word = load_word(at) ^ crc;
      crc = 0;
      for (unsigned byte = 0; byte < 8; ++byte) crc ^= table[7 - byte][(word >> (8 * byte)) & 0xff];
    }
  for (; left > 0; ++at, --left) crc = (crc >> 8) ^ table[0][(crc ^ static_cast<std::uint32_t>(*at)) & 0xff];
  return ~crc;
}

namespace {

// A linear map of the 32 bits of a register: column i is what bit i becomes.
using BitMatrix = std::array<std::uint32_t, 32>;

std::uint32_t times(const BitMatrix& matrix, std::uint32_t bits) {
  std::uint32_t result = 0;
  for (std::size_t i = 0; bits != 0; ++i, bits >>= 1)
    if (bits & 1) result ^= matrix[i];
  return result;
}

// The map of a register over 2^doublings zero bytes.
BitMatrix zeros_matrix(int doublings) {
  BitMatrix matrix{};
  for (std::size_t i = 0; i < 32; ++i) {
    const std::uint32_t bit = std::uint32_t{1} << i;
    matrix[i] = (bit >> 8) ^ tables()[0][bit & 0xff];
  }
  for (int doubling = 0; doubling < doublings; ++doubling) {
    BitMatrix squared{};
    for (std::size_t i = 0; i < 32; ++i) squared[i] = times(matrix, matrix[i]);
    matrix = squared;
  }
  return matrix;
}

}  // namespace

#if defined(__x86_64__)
namespace {

// The same map as a table for each of the register's four bytes.
using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

ShiftTable shift_table(int doublings) {
  const BitMatrix matrix = zeros_matrix(doublings);
  ShiftTable table{};
  for (std::size_t place = 0; place < 4; ++place)
    for (std::uint32_t byte = 0; byte < 256; ++byte) table[place][byte] = times(matrix, byte << (8 * place));
  return table;
}

constexpr int kLongDoublings = 12, kShortDoublings = 8;  // Streams of 4096 bytes, then of 256.

std::uint32_t shift(const ShiftTable& table, std::uint32_t crc) noexcept {
  return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^ table[2][(crc >> 16) & 0xff] ^ table[3][crc >> 24];
}

// Three neighbouring streams at once: the instruction takes three cycles but one can begin in each.
__attribute__((target("sse4.2"))) void three_streams(std::size_t stream_bytes, const ShiftTable& table,
                                                     const std::byte*& at, std::size_t& left, std::uint64_t& crc) {
  while (left >= 3 * stream_bytes) {
    std::uint64_t second = 0, third = 0;
    for (const std::byte* const end = at + stream_bytes; at != end; at += 8) {
      crc = _mm_crc32_u64(crc, load_word(at));
      second = _mm_crc32_u64(second, load_word(at + stream_bytes));
      third = _mm_crc32_u64(third, load_word(at + 2 * stream_bytes));
    }
    crc = shift(table, static_cast<std::uint32_t>(crc)) ^ second;
    crc = shift(table, static_cast<std::uint32_t>(crc)) ^ third;
    at += 2 * stream_bytes;
    left -= 3 * stream_bytes;
  }
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                                      std::uint32_t before) noexcept {
  std::uint64_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  static const ShiftTable long_shift = shift_table(kLongDoublings), short_shift = shift_table(kShortDoublings);
  three_streams(std::size_t{1} << kLongDoublings, long_shift, at, left, crc);
  three_streams(std::size_t{1} << kShortDoublings, short_shift, at, left, crc);
  for (; left >= 8; at += 8, left -= 8) crc = _mm_crc32_u64(crc, load_word(at));
  for (; left > 0; ++at, --left) crc = _mm_crc32_u8(static_cast<std::uint32_t>(crc), static_cast<unsigned char>(*at));
  return ~static_cast<std::uint32_t>(crc);
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const bool instruction = __builtin_cpu_supports("sse4.2");
  return instruction ? crc32c_by_instruction(bytes, before) : crc32c_by_tables(bytes, before);
}
#else
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return crc32c_by_tables(bytes, before);
}
#endif

std::uint32_t combine_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) noexcept {
  static const auto matrices = [] {  // For 1, 2, 4, ... zeros.
    std::array<BitMatrix, 64> made{};
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = zeros_matrix(static_cast<int>(i));
    return made;
  }();
  for (std::size_t i = 0; second_bytes != 0; ++i, second_bytes >>= 1)
    if (second_bytes & 1) first = times(matrices[i], first);
  return first ^ second;
}

}  // namespace plimsoll::internal
