// Columns: numbers packed for the page. Each becomes text that a browser unpacks in pieces.
//
// A column of n 32-bit numbers is n first bytes, n second bytes, ... (numbers that are alike then compress well),
// deflated (zlib) and written in base64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

std::string pack_column(std::span<const std::uint32_t> numbers);
std::string pack_bytes(std::string_view bytes);  // Deflated, base64.

}  // namespace plimsoll
