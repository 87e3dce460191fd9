#include "plimsoll/plan/lifetimes_csv.h"

#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kGaps, kAliasSet, kAliasOffset, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kColumnNames = {
    "id", "lower", "upper", "size", "alignment", "gaps", "alias_set", "alias_offset", "offset"};
constexpr std::string_view kPlanMark = "# plimsoll plan instance=";

struct Field {
  std::string_view text;
  std::size_t column;  // Of its first character in the line, from 1.
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::vector<Field> split(std::string_view line, char separator, std::size_t first_column = 1) {
  std::vector<Field> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    const std::string_view raw = line.substr(begin, end - begin);
    const std::string_view text = trim(raw);
    fields.push_back({text, first_column + begin + (text.empty() ? 0 : text.data() - raw.data())});
    begin = end + 1;
  }
  return fields;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Lifetimes parse() {
    std::string_view line;
    while (next_line(line)) {
      if (line.starts_with(kPlanMark)) read_mark(line);
      if (trim(line).empty() || line.front() == '#') continue;
      has_header_ ? read_row(line) : read_header(line);
    }
    if (!has_header_) fail(1, "no header line; the first line must name the columns id,lower,upper,size");
    if (has_mark_ && mark_ != instance_hash(result_.buffers)) {
      line_ = 1;
      fail(kPlanMark.size() + 1, "the plan was made for another instance; make a new one");
    }
    return std::move(result_);
  }

 private:
  bool next_line(std::string_view& line) {
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    return true;
  }

  [[noreturn]] void fail(std::size_t column, const std::string& reason) const {
    throw Corruption(name_ + ":" + std::to_string(line_) + ":" + std::to_string(column) + ": " + reason);
  }

  void read_mark(std::string_view line) {
    const std::string_view digits = line.substr(kPlanMark.size(), 16);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), mark_, 16);
    if (error != std::errc() || end != digits.data() + 16)
      fail(kPlanMark.size() + 1, "the hash of the instance must be 16 hexadecimal digits");
    has_mark_ = true;
  }

  void read_header(std::string_view line) {
    index_.fill(-1);
    const std::vector<Field> fields = split(line, ',');
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto column = std::find(kColumnNames.begin(), kColumnNames.end(), fields[f].text) - kColumnNames.begin();
      if (column == kColumns)
        fail(fields[f].column,
             "unknown column \"" + std::string(fields[f].text) +
                 "\"; known are id, lower, upper, size, alignment, gaps, alias_set, alias_offset, offset");
      if (index_[column] >= 0) fail(fields[f].column, "column \"" + std::string(fields[f].text) + "\" appears twice");
      index_[column] = static_cast<int>(f);
    }
    for (const Column required : {kId, kLower, kUpper, kSize})
      if (index_[required] < 0)
        fail(line.size() + 1, "column \"" + std::string(kColumnNames[required]) + "\" is missing");
    columns_ = fields.size();
    has_header_ = true;
  }

  template <typename Number>
  Number number(const Field& field, std::string_view what) const {
    Number value{};
    const char* end = field.text.data() + field.text.size();
    const auto [stop, error] = std::from_chars(field.text.data(), end, value);
    if (error == std::errc::result_out_of_range)
      fail(field.column, std::string(what) + " \"" + std::string(field.text) + "\" does not fit 64 bits");
    if (error != std::errc() || stop != end)
      fail(field.column, std::string(what) + " \"" + std::string(field.text) + "\" is not a whole number");
    return value;
  }

  void read_row(std::string_view line) {
    const std::vector<Field> fields = split(line, ',');
    if (fields.size() != columns_)
      fail(fields.size() < columns_ ? line.size() + 1 : fields[columns_].column,
           std::to_string(fields.size()) + " fields where the header has " + std::to_string(columns_));
    const auto has = [&](Column c) { return index_[c] >= 0 && !fields[index_[c]].text.empty(); };
    const auto at = [&](Column c) -> const Field& { return fields[index_[c]]; };
    add_id(at(kId));
    Buffer buffer;
    buffer.lower = number<std::int64_t>(at(kLower), "lower");
    buffer.upper = number<std::int64_t>(at(kUpper), "upper");
    buffer.size = number<std::size_t>(at(kSize), "size");
    if (buffer.lower >= buffer.upper)
      fail(at(kUpper).column, "upper " + std::to_string(buffer.upper) + " is not greater than lower " +
                                  std::to_string(buffer.lower) + "; lifetimes are half-open");
    if (has(kAlignment)) buffer.alignment = number<std::size_t>(at(kAlignment), "alignment");
    if (buffer.alignment == 0) fail(at(kAlignment).column, "alignment is 0; use 1 for none");
    if (has(kGaps)) read_gaps(at(kGaps), buffer);
    if (has(kAliasSet)) buffer.alias_set = number<int>(at(kAliasSet), "alias_set");
    if (has(kAliasOffset)) buffer.alias_offset = number<std::size_t>(at(kAliasOffset), "alias_offset");
    if (index_[kOffset] >= 0) result_.offsets.push_back(number<std::size_t>(at(kOffset), "offset"));
    result_.buffers.push_back(std::move(buffer));
  }

  void add_id(const Field& field) {
    if (field.text.empty()) fail(field.column, "the id is empty");
    const auto [found, is_new] = lines_.emplace(field.text, line_);
    if (!is_new) fail(field.column, "id \"" + found->first + "\" was used in line " + std::to_string(found->second));
    result_.ids.push_back(found->first);
  }

  // "lower-upper" or "lower-upper@low:high", blank between two. Times in gaps are not negative.
  void read_gaps(const Field& field, Buffer& buffer) const {
    for (const Field& word : split(field.text, ' ', field.column)) {
      if (word.text.empty()) continue;
      const std::vector<Field> parts = split(word.text, '@', word.column);
      const std::vector<Field> times = split(parts[0].text, '-', parts[0].column);
      const bool has_window = parts.size() == 2;
      const std::vector<Field> window = has_window ? split(parts[1].text, ':', parts[1].column) : std::vector<Field>();
      if (parts.size() > 2 || times.size() != 2 || (has_window && window.size() != 2))
        fail(word.column, "gap \"" + std::string(word.text) + "\" is not of the form 2-5 or 2-5@0:256");
      Gap gap{number<std::int64_t>(times[0], "gap"), number<std::int64_t>(times[1], "gap"), 0, 0};
      if (has_window) {
        gap.window_lower = number<std::size_t>(window[0], "window");
        gap.window_upper = number<std::size_t>(window[1], "window");
      }
      if (gap.lower >= gap.upper || gap.lower < buffer.lower || gap.upper > buffer.upper)
        fail(word.column, "gap \"" + std::string(word.text) + "\" is empty or outside of the lifetime");
      if (gap.window_lower > gap.window_upper || gap.window_upper > buffer.size)
        fail(word.column, "window of gap \"" + std::string(word.text) + "\" is outside of the buffer's " +
                              std::to_string(buffer.size) + " bytes");
      buffer.gaps.push_back(gap);
    }
  }

  std::string_view rest_;
  std::string name_;
  std::size_t line_ = 0;
  bool has_header_ = false;
  bool has_mark_ = false;
  std::uint64_t mark_ = 0;
  std::size_t columns_ = 0;
  std::array<int, kColumns> index_{};
  std::unordered_map<std::string, std::size_t> lines_;  // Of each id.
  Lifetimes result_;
};

}  // namespace

Lifetimes parse_lifetimes(std::string_view text, std::string_view name) { return Parser(text, name).parse(); }

Lifetimes read_lifetimes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw NotFound("lifetimes: cannot open \"" + path + "\"; check the path");
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.eof() && file.fail()) throw NotFound("lifetimes: cannot read \"" + path + "\"; is it a file?");
  return parse_lifetimes(text.str(), path);
}

}  // namespace plimsoll::internal
