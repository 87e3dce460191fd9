// parse_whole_and_in_pieces: what fuzzing a parser of lines begins with.
//
//   const auto [whole, pieces] = parse_whole_and_in_pieces<TraceParser>(data, size);
//   if (!whole) return 0;                   // Corruption, both times.
//
// The first byte sets the size of the pieces, the rest is the text. Ends the program unless both ways agree on whether
// the text is valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll {

template <class Parser>
auto parse_in_pieces(std::string_view text, std::size_t piece) -> std::optional<decltype(Parser("fuzz").finish())> {
  try {
    Parser parser("fuzz");
    for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
    return parser.finish();
  } catch (const Corruption&) {
    return std::nullopt;
  }
}

template <class Parser>
auto parse_whole_and_in_pieces(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = size == 0 ? "" : std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto whole = parse_in_pieces<Parser>(text, SIZE_MAX);
  auto pieces = parse_in_pieces<Parser>(text, size == 0 ? 1 : data[0] % 16 + 1u);
  PLIMSOLL_CHECK(whole.has_value() == pieces.has_value());
  return std::pair(std::move(whole), std::move(pieces));
}

}  // namespace plimsoll
