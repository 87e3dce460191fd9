// Snappy decompression, for index tables that were written inside Google. We never compress so.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll {

// What `compressed` stands for; nothing when it is damaged or would have more than `max_bytes`.
std::optional<std::string> snappy_uncompress(std::string_view compressed, std::size_t max_bytes);

}  // namespace plimsoll
