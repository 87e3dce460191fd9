#include "plimsoll/base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

// The power of 1024 that a unit names, or -1.
int unit_power(std::string_view unit) {
  if (unit.empty() || unit == "b" || unit == "byte" || unit == "bytes") return 0;
  constexpr std::string_view kLetters = "kmgtpe";
  const std::size_t position = kLetters.find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (position == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib" || rest == "i")) return -1;
  return static_cast<int>(position) + 1;
}

}  // namespace

std::string format_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_bytes_exactly(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} {}", bytes, bytes == 1 ? "byte" : "bytes");
  return fmt::format("{} ({} bytes)", format_bytes(bytes), bytes);
}

std::size_t parse_bytes(std::string_view text) {
  const auto fail = [&](const char* why) -> std::size_t {
    throw InvalidArgument(fmt::format("byte size \"{}\": {}; write for example 4096, 64KiB or 1.5GiB", text, why));
  };
  std::string lower;
  for (const char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) lower += static_cast<char>(std::tolower(c));
  const std::size_t digits = lower.find_first_not_of("0123456789.");
  const std::string number = lower.substr(0, digits);
  const int power = digits == std::string::npos ? 0 : unit_power(std::string_view(lower).substr(digits));
  if (lower.starts_with('-')) return fail("a size must be positive");
  if (number.empty()) return fail("no number in it");
  if (power < 0) return fail("unknown unit");
  std::uint64_t whole = 0;
  const auto exact = std::from_chars(number.data(), number.data() + number.size(), whole);
  if (exact.ec == std::errc() && exact.ptr == number.data() + number.size()) {
    if (power > 0 && whole > (UINT64_MAX >> (10 * power))) return fail("larger than any memory");
    return static_cast<std::size_t>(whole << (10 * power));
  }
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size()) return fail("not a number");
  value = std::ldexp(value, 10 * power);
  if (value >= 18446744073709551615.0) return fail("larger than any memory");
  return static_cast<std::size_t>(std::round(value));
}

}  // namespace plimsoll
