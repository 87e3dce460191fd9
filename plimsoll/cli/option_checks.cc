#include "plimsoll/cli/option_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

template <class T>
bool read(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

OptionCheck size_check(std::size_t least) {
  return [least](const std::string& text) -> std::string {
    try {
      if (parse_bytes(text) >= least) return "";
      return fmt::format("\"{}\" is too small; give {} or more", text, format_bytes(least));
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
}

OptionCheck at_least(long long least) {
  return [least](const std::string& text) {
    long long value = 0;
    if (read(text, value) && value >= least) return std::string();
    return fmt::format("\"{}\" is not valid; give a whole number, {} or more", text, least);
  };
}

OptionCheck between(long long least, long long most) {
  return [least, most](const std::string& text) {
    long long value = 0;
    if (read(text, value) && value >= least && value <= most) return std::string();
    return fmt::format("\"{}\" is not valid; give a whole number from {} to {}", text, least, most);
  };
}

OptionCheck positive_number() {
  return [](const std::string& text) {
    double value = 0;
    if (read(text, value) && value > 0 && std::isfinite(value)) return std::string();
    return fmt::format("\"{}\" is not valid; give a number above 0", text);
  };
}

OptionCheck number_at_least(double least) {
  return [least](const std::string& text) {
    double value = 0;
    if (read(text, value) && value >= least && std::isfinite(value)) return std::string();
    return fmt::format("\"{}\" is given; give a number, {} or more", text, least);
  };
}

OptionCheck fraction() {
  return [](const std::string& text) {
    double value = 0;
    if (read(text, value) && value > 0 && value < 1) return std::string();
    return fmt::format("\"{}\" is not valid; give a number between 0 and 1", text);
  };
}

}  // namespace plimsoll::internal
