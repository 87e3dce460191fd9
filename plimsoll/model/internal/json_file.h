// JSON files that are not trusted: bounded in bytes and depth.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plimsoll {

// Throws NotFound, InvalidArgument for more than 1 GiB, Corruption with the offset for what is no JSON or deeper than
// 64 levels.
nlohmann::json read_json_file(const std::string& path);

}  // namespace plimsoll
