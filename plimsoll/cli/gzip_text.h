// read_gzip_text(): reads a text file, plain or gzip (detected by content), in pieces.
//
//   read_gzip_text("trace", path, [&](std::string_view piece) { parser.feed(piece); }, [&] { return parser.lines(); });
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace plimsoll::internal {

// Throws NotFound when the file cannot be opened or read, Corruption "<what> "<name>": line <n>: ..." for a damaged or
// truncated stream, where n is one more than `lines()`. Exceptions of `feed` pass through.
void read_gzip_text(const char* what, const std::string& path, const std::function<void(std::string_view)>& feed,
                    const std::function<std::size_t()>& lines);

}  // namespace plimsoll::internal
