#include "plimsoll/model/internal/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/gzip_file.h"

namespace plimsoll {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? result + "..." : result;
}

bool is_missing(std::string_view text) {
  return text.empty() || text == "NA" || text == "N/A" || text == "NaN" || text == "nan" || text == "null";
}

std::optional<float> parse(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return 1.f;
  if (text == "false" || text == "False" || text == "FALSE") return 0.f;
  if (text.starts_with('+')) text.remove_prefix(1);
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

CsvColumns::CsvColumns(const std::string& path, const CsvOptions& options) : path_(path) {
  const std::pair<std::string_view, Missing> choices[] = {
      {"error", Missing::kError}, {"zero", Missing::kZero}, {"nan", Missing::kNan}, {"drop", Missing::kDrop}};
  const auto chosen = std::find_if(std::begin(choices), std::end(choices),
                                   [&](const auto& choice) { return choice.first == options.missing; });
  if (chosen == std::end(choices))
    throw InvalidArgument(
        fmt::format("load_csv: missing is \"{}\"; use \"error\", \"zero\", \"nan\" or \"drop\"", options.missing));
  missing_ = chosen->second;
  GzipFile file(path);
  CsvReader reader([&](std::span<char> to) { return file.read(to); }, path, options.delimiter);
  if (!reader.next()) throw Corruption(fmt::format("{}: has no lines", path));
  choose(reader, options);
  do {
    if (header_ && reader.line() == 1) continue;
    learn(reader);
  } while (reader.next());
  for (auto& [column, codes] : categories_) {
    float next = 0;
    for (auto& [text, code] : codes) code = next++;
  }
}

void CsvColumns::choose(CsvReader& reader, const CsvOptions& options) {
  const std::vector<std::string>& first = reader.fields();
  const auto is_text = [](const std::string& field) { return !is_missing(trimmed(field)) && !parse(trimmed(field)); };
  // Where text is expected, one field of it is no sign of a header.
  header_ = options.header.value_or(options.categorical.empty() ? std::any_of(first.begin(), first.end(), is_text)
                                                                : std::all_of(first.begin(), first.end(), is_text));
  for (std::size_t i = 0; i < first.size(); ++i)
    names_.push_back(header_ ? std::string(trimmed(first[i])) : std::to_string(i));
  std::vector<char> is_target(names_.size()), is_categorical(names_.size());
  for (const std::string& name : options.categorical) is_categorical[find(name)] = 1;
  const auto add = [&](std::vector<Column>& to, std::size_t index) {
    to.push_back({index, is_categorical[index] != 0});
    if (is_categorical[index]) categories_[index];
  };
  if (options.targets.empty() && !options.all_features && names_.size() > 1) add(targets_, names_.size() - 1);
  for (const std::string& name : options.targets) add(targets_, find(name));
  for (const Column& column : targets_) is_target[column.index] = 1;
  for (const std::string& name : options.features) add(features_, find(name));
  if (options.features.empty())
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!is_target[i]) add(features_, i);
  if (features_.empty())
    throw InvalidArgument(fmt::format("load_csv: {}: all columns are targets; leave one as a feature", path_));
}

std::size_t CsvColumns::find(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number < names_.size()) return number;
  std::string known;
  for (std::size_t i = 0; i < names_.size() && i < 30; ++i) known += (i == 0 ? "" : ", ") + shown(names_[i]);
  throw NotFound(fmt::format("{}: there is no column \"{}\"; there are: {}", path_, shown(name), known));
}

std::string CsvColumns::described(std::size_t index) const {
  return header_ ? fmt::format("column {} (\"{}\")", index, shown(names_[index])) : fmt::format("column {}", index);
}

bool CsvColumns::is_kept(const CsvReader& reader) const {
  if (reader.fields().size() != names_.size())
    reader.corrupt(fmt::format("has {} fields, the first line {}", reader.fields().size(), names_.size()));
  if (missing_ != Missing::kDrop) return true;
  for (const auto* columns : {&features_, &targets_})
    for (const Column& column : *columns)
      if (is_missing(trimmed(reader.fields()[column.index]))) return false;
  return true;
}

void CsvColumns::learn(CsvReader& reader) {
  if (!is_kept(reader)) {
    ++dropped_;
    return;
  }
  ++rows_;
  for (auto& [index, codes] : categories_) {
    const std::string_view text = trimmed(reader.fields()[index]);
    if (!is_missing(text)) codes.emplace(text, 0.f);
  }
}

float CsvColumns::number(const CsvReader& reader, const Column& column) const {
  const std::string_view text = trimmed(reader.fields()[column.index]);
  if (is_missing(text)) {
    if (missing_ == Missing::kError)
      reader.corrupt(fmt::format("{} is empty; say what missing values are with `missing`", described(column.index)));
    return missing_ == Missing::kZero ? 0.f : std::nanf("");
  }
  if (column.categorical) {
    const auto& codes = categories_.at(column.index);
    const auto found = codes.find(std::string(text));
    if (found == codes.end()) reader.corrupt(fmt::format("{}: the file has changed", described(column.index)));
    return found->second;
  }
  const std::optional<float> value = parse(text);
  if (!value)
    reader.corrupt(fmt::format("{}: \"{}\" is no number; name the column among the categorical ones if it is text",
                               described(column.index), shown(text)));
  return *value;
}

void CsvColumns::skip_header(CsvReader& reader) const {
  if (header_) reader.next();
}

bool CsvColumns::read(CsvReader& reader, float* features, float* targets) const {
  do {
    if (!reader.next()) return false;
  } while (!is_kept(reader));
  for (const Column& column : features_) *features++ = number(reader, column);
  for (const Column& column : targets_) *targets++ = number(reader, column);
  return true;
}

std::vector<std::string> CsvColumns::names(bool of_targets) const {
  std::vector<std::string> result;
  for (const Column& column : of_targets ? targets_ : features_) result.push_back(names_[column.index]);
  return result;
}

std::vector<std::pair<std::string, std::vector<std::string>>> CsvColumns::categories() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const auto& [index, codes] : categories_) {
    result.emplace_back(names_[index], std::vector<std::string>());
    for (const auto& [text, code] : codes) result.back().second.push_back(text);
  }
  return result;
}

}  // namespace plimsoll
