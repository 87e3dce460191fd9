#include "plimsoll/base/json.h"

#include <istream>

namespace plimsoll::internal {

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }
nlohmann::json parse_json(std::istream& text) { return nlohmann::json::parse(text); }
nlohmann::json parse_json(std::istream&& text) { return parse_json(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) { return nlohmann::ordered_json::parse(text); }
nlohmann::json try_parse_json(std::string_view text) { return nlohmann::json::parse(text, nullptr, false); }

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string json_text(const nlohmann::ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string strict_json_text(const nlohmann::json& document, int indent) { return document.dump(indent); }
std::string strict_json_text(const nlohmann::ordered_json& document, int indent) { return document.dump(indent); }

}  // namespace plimsoll::internal
