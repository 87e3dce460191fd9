// Text for other programs: the output is valid whatever bytes a name contains.
//
//   valid_utf8("caf\xe9")        // "caf\uFFFD"
//   escape_xml("a<b> \x01")      // "a&lt;b&gt;  "
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// Bytes that are not UTF-8 (and codes that Unicode forbids) become U+FFFD, the replacement character.
PLIMSOLL_API std::string valid_utf8(std::string_view text);

// For XML, SVG and HTML, between tags and in quoted attributes: valid UTF-8, special characters escaped, control
// characters replaced by spaces.
PLIMSOLL_API std::string escape_xml(std::string_view text);

// For a whole document as text inside another one (an HTML textarea): escapes only what would end the text or be
// decoded; all other bytes stay, line ends included.
PLIMSOLL_API std::string escape_document(std::string_view document);

}  // namespace plimsoll::internal
