// Reads small text files of the system.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// Returns "" for a file that cannot be read.
inline std::string read_text_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What follows `key` in the line that begins with it; "" when no line does.
inline std::string_view value_of_line(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const bool whole_word = line.size() > key.size() && (line[key.size()] == ':' || line[key.size()] == ' ');
    if (line.starts_with(key) && whole_word) return line.substr(key.size());
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

}  // namespace plimsoll::internal
