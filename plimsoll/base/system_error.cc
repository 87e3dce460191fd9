#include "plimsoll/base/system_error.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <string>
#include <system_error>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

std::string_view url_hint(std::string_view name) noexcept {
  const std::size_t mark = name.find(":/");  // Paths put two slashes together.
  const bool is_url = mark != std::string_view::npos && mark > 1 &&
                      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+.-") == mark;
  return is_url ? "; it is a URL, and only local files are read: download it first" : "";
}

void throw_system_error(std::string_view kind, std::string_view name, std::string_view verb, int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  const std::string text = fmt::format("{} \"{}\": cannot {}: {} (errno {}){}", kind, name, verb, reason, error_number,
                                       error_number == ENOENT ? url_hint(name) : "");
  if (error_number == ENOENT) throw NotFound(text);
  throw Error(text);
}

}  // namespace plimsoll::internal
