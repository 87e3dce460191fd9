// JSON files from untrusted sources: limited in bytes and depth, with errors that name the file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plimsoll/base/function_ref.h"

namespace plimsoll::internal {

// Calls `f` with the document. Throws NotFound, InvalidArgument for more than 1 GiB, Unsupported for a model in another
// format, Corruption with the offset for text that is not JSON or deeper than 64 levels. Exceptions of the JSON library
// out of `f`, for a value of an unexpected kind, become Corruption, too.
void with_json_file(const std::string& path, FunctionRef<void(const nlohmann::json& document)> f);
// The same for text from elsewhere, named `path` in errors.
void with_json_text(const std::string& text, const std::string& path,
                    FunctionRef<void(const nlohmann::json& document)> f);

}  // namespace plimsoll::internal
