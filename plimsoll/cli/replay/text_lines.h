// TextLines: the lines of a text that arrives in pieces of any size, and errors that name the line.
//
//   TextLines lines("trace", "run.csv", 4096);
//   lines.feed(piece, [&](std::string_view line) { id = lines.number(line, "id"); });
//   lines.finish(...);          // The last line, if it has no newline.
//
// Lines come without their line end ("\n" or "\r\n"). Errors are Corruption: `trace "run.csv": line 3: ...`.
// Thread safety: one thread at a time. Cost: copies only lines that were cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plimsoll/base/function_ref.h"

namespace plimsoll::internal {

class TextLines {
 public:
  TextLines(std::string kind, std::string name, std::size_t max_line_bytes);

  // Calls `read` for each complete line. Throws Corruption for a longer line than allowed.
  void feed(std::string_view text, FunctionRef<void(std::string_view line)> read);
  void finish(FunctionRef<void(std::string_view line)> read);

  std::size_t count() const noexcept { return count_; }  // Complete lines so far; the current one inside `read`.
  // A whole number. Throws Corruption, naming `what`, when it is missing, too large or something else.
  std::uint64_t number(std::string_view text, const char* what) const;
  [[noreturn]] void fail(const std::string& reason) const;

 private:
  void read_one(std::string_view line, FunctionRef<void(std::string_view line)> read);

  const std::string kind_, name_;
  const std::size_t max_line_bytes_;
  std::string partial_;  // The beginning of a line whose end has not been fed yet.
  std::size_t count_ = 0;
};

// `text` as an error can show it: short, and without control characters.
std::string shown(std::string_view text);

}  // namespace plimsoll::internal
