#include "plimsoll/cli/replay/text_lines.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

TextLines::TextLines(std::string kind, std::string name, std::size_t max_line_bytes)
    : kind_(std::move(kind)), name_(std::move(name)), max_line_bytes_(max_line_bytes) {}

void TextLines::fail(const std::string& reason) const {
  throw Corruption(fmt::format("{} \"{}\": line {}: {}", kind_, name_, count_, reason));
}

void TextLines::read_one(std::string_view line, FunctionRef<void(std::string_view line)> read) {
  ++count_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  read(line);
}

void TextLines::feed(std::string_view text, FunctionRef<void(std::string_view line)> read) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (partial_.size() + piece.size() > max_line_bytes_) {
      ++count_;
      fail(fmt::format("longer than {} bytes; this looks like a file of another kind", max_line_bytes_));
    }
    if (end == std::string_view::npos) {
      partial_ += piece;
      return;
    }
    if (partial_.empty()) {
      read_one(piece, read);
    } else {
      partial_ += piece;
      read_one(partial_, read);
      partial_.clear();
    }
    text.remove_prefix(end + 1);
  }
}

void TextLines::finish(FunctionRef<void(std::string_view line)> read) {
  if (!partial_.empty()) read_one(partial_, read);
  partial_.clear();
}

std::uint64_t TextLines::number(std::string_view text, const char* what) const {
  if (text.empty()) fail(fmt::format("the {} is missing", what));
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc::result_out_of_range) fail(fmt::format("{} \"{}\" does not fit 64 bits", what, shown(text)));
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    fail(fmt::format("{} \"{}\" is not a whole number", what, shown(text)));
  return value;
}

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? result + "..." : result;
}

}  // namespace plimsoll::internal
