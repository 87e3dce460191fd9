// Columns: numbers packed for the page. Each becomes text that a browser unpacks in pieces.
//
// A column of n numbers is n lowest bytes, n second bytes, ... as many as the largest needs (similar numbers then
// compress well), deflated (zlib) and written in base64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::internal {

std::string pack_column(std::span<const std::uint32_t> numbers, std::size_t planes);
std::size_t planes_of(std::span<const std::uint32_t> numbers);  // The bytes that the largest needs, 1 to 4.
std::string pack_bytes(std::string_view bytes);                 // Deflated, base64.

}  // namespace plimsoll::internal
