#include "plimsoll/model/data/csv_reader.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

CsvReader::CsvReader(Feed feed, std::string name, char delimiter)
    : feed_(std::move(feed)), name_(std::move(name)), delimiter_(delimiter), buffer_(64 << 10) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
    throw InvalidArgument(fmt::format("{}: a quote or a line end cannot be the delimiter; use another", name_));
  if (fill() && end_ >= 3 && std::string_view(buffer_.data(), 3) == "\xEF\xBB\xBF") at_ = 3;
}

void CsvReader::corrupt(const std::string& what) const {
  throw Corruption(fmt::format("{}: line {}: {}", name_, line_, what));
}

bool CsvReader::fill() {
  at_ = 0;
  end_ = feed_(buffer_);
  return end_ > 0;
}

int CsvReader::peek() {
  if (at_ == end_ && !fill()) return -1;
  return static_cast<unsigned char>(buffer_[at_]);
}

int CsvReader::get() {
  const int c = peek();
  if (c < 0) return c;
  ++at_;
  if (c == '\n') ++ended_;
  return c;
}

void CsvReader::put(char c) {
  std::string& field = fields_[count_ - 1];
  if (field.size() == kMaxFieldBytes) corrupt("a field has more than 1 MiB; this is not a table");
  field.push_back(c);
}

void CsvReader::read_quoted() {
  for (int c = get();; c = get()) {
    if (c < 0) corrupt("a quote is not closed");
    if (c != '"') {
      put(static_cast<char>(c));
    } else if (peek() == '"') {
      put('"');
      get();
    } else {
      return;
    }
  }
}

bool CsvReader::read_field() {
  if (count_ == kMaxFields) corrupt("has more than a million fields; this is not a table");
  if (++count_ > fields_.size()) fields_.emplace_back();
  fields_[count_ - 1].clear();
  was_quoted_ = false;
  while (true) {
    const int c = get();
    if (c < 0 || c == '\n') return true;
    if (c == '\r' && (peek() == '\n' || peek() < 0)) continue;
    if (c == delimiter_) return false;
    if (c == '"' && fields_[count_ - 1].empty() && !was_quoted_) {
      read_quoted();
      was_quoted_ = true;
    } else {
      if (c == '\r' || c == 0)
        corrupt(c == 0 ? "has a zero byte; this is not text"
                       : "has a carriage return that ends no line; end lines with line feeds");
      put(static_cast<char>(c));
    }
  }
}

bool CsvReader::next() {
  while (peek() >= 0) {
    line_ = ended_ + 1;
    count_ = 0;
    while (!read_field()) {
    }
    if (count_ == 1 && fields_[0].empty() && !was_quoted_) continue;  // An empty line.
    fields_.resize(count_);
    return true;
  }
  return false;
}

}  // namespace plimsoll::internal
