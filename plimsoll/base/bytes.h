// Byte sizes: written, printed and parsed the same way everywhere.
//   using namespace plimsoll::literals;
//   std::size_t limit = 24_MiB;
//   format_bytes(limit)       // "24.0 MiB"
//   parse_bytes("1.5 GiB")    // 1610612736
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll {

inline namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long n) { return static_cast<std::size_t>(n) << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return static_cast<std::size_t>(n) << 20; }
constexpr std::size_t operator""_GiB(unsigned long long n) { return static_cast<std::size_t>(n) << 30; }
}  // namespace literals

// "512 B", "1.5 KiB", "24.0 MiB": the largest unit in which the value is at least 1, one decimal.
PLIMSOLL_API std::string format_bytes(std::size_t bytes);

// "24.0 MiB (25165824 bytes)": for messages, where both matter. Plain "512 bytes" below 1 KiB.
PLIMSOLL_API std::string format_bytes_exactly(std::size_t bytes);

// Reads "24MiB", "1.5 GiB", "64k", "4096", "4096B". Units are powers of 1024 (KiB, K, KB alike), case does not matter.
// Throws InvalidArgument for anything else: empty, negative, unknown unit, more than fits.
PLIMSOLL_API std::size_t parse_bytes(std::string_view text);

}  // namespace plimsoll
