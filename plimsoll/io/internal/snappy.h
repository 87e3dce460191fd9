// Snappy decompression, for index tables that were written inside Google. We never write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::internal {

// The decompressed bytes; empty when damaged or larger than `max_bytes`.
std::optional<std::string> snappy_uncompress(std::string_view compressed, std::size_t max_bytes);

}  // namespace plimsoll::internal
