#include "plimsoll/base/system_error.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <string>
#include <system_error>

#include "plimsoll/base/error.h"

namespace plimsoll {

void throw_system_error(std::string_view kind, std::string_view name, std::string_view verb, int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  const std::string text = fmt::format("{} \"{}\": cannot {}: {} (errno {})", kind, name, verb, reason, error_number);
  if (error_number == ENOENT) throw NotFound(text);
  throw Error(text);
}

}  // namespace plimsoll
