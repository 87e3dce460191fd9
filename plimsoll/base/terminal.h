// What the terminal at a file descriptor can show.
//
//   if (shows_color(STDOUT_FILENO)) std::printf("\033[1m");
//   if (rewrites_lines(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K12 of 40");
//
// Files and pipes get plain lines; so does TERM=dumb. NO_COLOR (not empty) asks for no colors. Cost: one system call.
#pragma once

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

PLIMSOLL_API bool rewrites_lines(int file) noexcept;  // A terminal on which a line can be written over.
PLIMSOLL_API bool shows_color(int file) noexcept;

}  // namespace plimsoll::internal
