#include "plimsoll/device/device_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

// The prefixes that TensorFlow programs may put before a device of this process, longest first.
constexpr std::string_view kPrefixes[] = {
    "/JOB:LOCALHOST/REPLICA:0/TASK:0/DEVICE:", "/PHYSICAL_DEVICE:", "/DEVICE:", "/"};

bool is_type(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

}  // namespace

std::string device_type(std::string_view text) {
  std::string type(text);
  for (char& c : type)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return type;
}

DeviceName parse_device_name(std::string_view text) {
  const std::string upper = device_type(text);
  std::string_view rest = upper;
  for (const std::string_view prefix : kPrefixes) {
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    break;
  }
  const std::size_t colon = rest.find(':');
  const std::string_view type = rest.substr(0, colon), digits = colon < rest.size() ? rest.substr(colon + 1) : "";
  std::uint32_t index = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (!is_type(type) || digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    throw InvalidArgument(
        fmt::format("device \"{}\": not a device name; give a type and a number, such as \"CPU:0\"", text));
  return {std::string(type), index};
}

}  // namespace plimsoll::internal
