// The token of `plimsoll serve`: a new one, or one that a file keeps for programs that ask regularly.
#pragma once

#include <string>

namespace plimsoll::internal {

// Without a path, a new one. A file that is not there is made with a new one, for the user only. Throws
// FailedPrecondition for a file that others can read, InvalidArgument for one without a token, Error when it cannot be
// read or written.
std::string serve_token(const std::string& path);

}  // namespace plimsoll::internal
