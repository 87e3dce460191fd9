// Turns errors of system calls into ours: the path, the verb and the system's reason.
//   throw_system_error("file", path, "open", errno);   // file "x.ckpt": cannot open: permission denied (errno 13)
#pragma once

#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// For the message about a file that does not exist: "; it is a URL, .." when its name is one, otherwise "".
PLIMSOLL_API std::string_view url_hint(std::string_view name) noexcept;

// Throws NotFound for a name that does not exist, Error for everything else.
[[noreturn]] PLIMSOLL_API void throw_system_error(std::string_view kind, std::string_view name, std::string_view verb,
                                                  int error_number);

}  // namespace plimsoll::internal
