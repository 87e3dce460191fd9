// What --json prints: one document, indented; names and paths that are not UTF-8 are shown with replacement characters.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace plimsoll::internal {

void print_document(const nlohmann::ordered_json& document);

}  // namespace plimsoll::internal
