// The token of `plimsoll serve`: a new one, or one stored in a file for programs that connect regularly.
#pragma once

#include <string>

namespace plimsoll::internal {

// Without a path, makes a new one. A file that does not exist is created with a new token, readable only by the user.
// Throws FailedPrecondition for a file that others can read, InvalidArgument for one without a token, Error when it
// cannot be read or written.
std::string serve_token(const std::string& path);

}  // namespace plimsoll::internal
