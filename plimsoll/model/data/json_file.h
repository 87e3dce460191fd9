// JSON files that are not trusted: bounded in bytes and depth, and every fault in them is ours to name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plimsoll/base/function_ref.h"

namespace plimsoll::internal {

// Calls `f` with the document. Throws NotFound, InvalidArgument for more than 1 GiB, Unsupported for what is a model in
// another format, Corruption with the offset for what is no JSON or deeper than 64 levels. What the JSON library throws
// out of `f`, about a value of another kind than expected, becomes Corruption, too.
void with_json_file(const std::string& path, FunctionRef<void(const nlohmann::json& document)> f);
// The same for text that comes from elsewhere, named `path` in errors.
void with_json_text(const std::string& text, const std::string& path,
                    FunctionRef<void(const nlohmann::json& document)> f);

}  // namespace plimsoll::internal
