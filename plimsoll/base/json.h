// JSON text: parsing and printing are compiled once, here, instead of in every file that uses a document.
//
//   const nlohmann::json document = parse_json(text);       // throws nlohmann::json::parse_error
//   file.write(json_text(document, 2));                     // indented by 2
//
// Files that only pass documents on include <nlohmann/json_fwd.hpp>. Thread safety: any thread.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace plimsoll::internal {

nlohmann::json parse_json(std::string_view text);
nlohmann::json parse_json(std::istream& text);
nlohmann::json parse_json(std::istream&& text);
nlohmann::ordered_json parse_ordered_json(std::string_view text);  // Keeps the order of keys.
nlohmann::json try_parse_json(std::string_view text);              // is_discarded() when it is not JSON.

// Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& document, int indent = -1);
std::string json_text(const nlohmann::ordered_json& document, int indent = -1);
// Throws nlohmann::json::type_error for bytes that are not UTF-8.
std::string strict_json_text(const nlohmann::json& document, int indent = -1);
std::string strict_json_text(const nlohmann::ordered_json& document, int indent = -1);

}  // namespace plimsoll::internal
