#include "plimsoll/base/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace plimsoll::internal {
namespace {

std::string_view environment(const char* name) noexcept {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool rewrites_lines(int file) noexcept { return isatty(file) == 1 && environment("TERM") != "dumb"; }

bool shows_color(int file) noexcept { return rewrites_lines(file) && environment("NO_COLOR").empty(); }

}  // namespace plimsoll::internal
