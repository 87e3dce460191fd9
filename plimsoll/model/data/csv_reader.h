// CsvReader: reads the lines of a text in the format of RFC 4180, one after the other, as fields.
//
//   CsvReader reader(feed, "houses.csv", ',');
//   while (reader.next()) for (const std::string& field : reader.fields()) ...
//
// Fields may be quoted, and then contain delimiters, line ends and doubled quotes. Skips empty lines, and a UTF-8 mark
// at the beginning. Throws Corruption, with the line, for a quote without an end, and for fields and lines that are
// larger than any table has. Cost: one line is held.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::internal {

class CsvReader {
 public:
  // Fills the span as far as possible; less only at the end.
  using Feed = std::function<std::size_t(std::span<char>)>;

  CsvReader(Feed feed, std::string name, char delimiter);
  bool next();  // False at the end.
  const std::vector<std::string>& fields() const noexcept { return fields_; }
  std::size_t line() const noexcept { return line_; }  // Where the current one begins, from 1.
  [[noreturn]] void corrupt(const std::string& what) const;

 private:
  static constexpr std::size_t kMaxFieldBytes = std::size_t{1} << 20, kMaxFields = 1'000'000;

  int get();  // -1 at the end.
  int peek();
  bool fill();
  bool read_field();  // True when it was the line's last.
  void put(char c);
  void read_quoted();

  const Feed feed_;
  const std::string name_;
  const char delimiter_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
  std::vector<std::string> fields_;
  std::size_t count_ = 0;  // Fields in use; their memory is reused.
  std::size_t line_ = 0, ended_ = 0;
  bool was_quoted_ = false;  // The last field.
};

}  // namespace plimsoll::internal
