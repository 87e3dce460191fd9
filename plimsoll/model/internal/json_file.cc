#include "plimsoll/model/internal/json_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 64;

// Before it is parsed, so that depth costs nothing.
void check_depth(const std::string& text, const std::string& path) {
  int depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth)
        throw Corruption(fmt::format("{}: nested more than {} deep at offset {}", path, kMaxDepth, i));
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

}  // namespace

nlohmann::json read_json_file(const std::string& path) {
  const std::string text = read_file(path, kMaxBytes);
  check_depth(text, path);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw Corruption(fmt::format("{}: is no JSON at offset {}; the file is damaged", path, error.byte));
  }
}

}  // namespace plimsoll
