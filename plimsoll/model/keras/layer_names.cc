#include "plimsoll/model/keras/layer_names.h"

namespace plimsoll::internal {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

// Keras' rule: an underscore between a small letter and a capital, and before a capital that a small letter follows.
std::string snake_case(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (i > 0 && is_upper(c)) {
      const bool before_word = i + 1 < name.size() && is_lower(name[i + 1]);
      if (before_word || is_lower(name[i - 1])) result += '_';
    }
    result += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

}  // namespace plimsoll::internal
