#include "plimsoll/observe/report_columns.h"

#include <fmt/format.h>
#include <zlib.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve(divide_up(bytes.size(), 3) * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string pack_bytes(std::string_view bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  if (code != Z_OK) throw Error(fmt::format("report: zlib cannot pack {} bytes (code {})", bytes.size(), code));
  packed.resize(size);
  return base64(packed);
}

std::size_t planes_of(std::span<const std::uint32_t> numbers) {
  std::uint32_t bits = 0;
  for (const std::uint32_t number : numbers) bits |= number;
  return bits >> 24 ? 4 : bits >> 16 ? 3 : bits >> 8 ? 2 : 1;
}

std::string pack_column(std::span<const std::uint32_t> numbers, std::size_t count) {
  std::string planes(numbers.size() * count, '\0');
  for (std::size_t plane = 0; plane < count; ++plane)
    for (std::size_t i = 0; i < numbers.size(); ++i)
      planes[plane * numbers.size() + i] = static_cast<char>(numbers[i] >> (8 * plane));
  return pack_bytes(planes);
}

}  // namespace plimsoll::internal
