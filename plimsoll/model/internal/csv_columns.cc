#include "plimsoll/model/internal/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/model/counted.h"
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
  Lines first;  // Two are enough to tell a header by.
  {
    GzipFile file(path);
    CsvReader reader([&](std::span<char> to) { return file.read(to); }, path, options.delimiter);
    while (first.size() < 2 && reader.next()) first.push_back(reader.fields());
  }
  if (first.empty()) throw Corruption(fmt::format("{}: has no lines", path));
  choose(first, options);
  GzipFile file(path);
  CsvReader reader([&](std::span<char> to) { return file.read(to); }, path, options.delimiter);
  skip_header(reader);
  while (reader.next()) learn(reader);
  for (auto& [column, categories] : categories_) {
    if (categories.known) continue;
    float next = 0;
    for (auto& [text, code] : categories.codes) code = next++;
  }
}

void CsvColumns::choose(const Lines& first, const CsvOptions& options) {
  header_ = options.header.value_or(names_a_column(first, options));
  const auto name_columns = [&] {
    names_.clear();
    for (std::size_t i = 0; i < first[0].size(); ++i)
      names_.push_back(header_ ? std::string(trimmed(first[0][i])) : std::to_string(i));
    choose_columns(options);
  };
  name_columns();
  if (header_ || options.header || !has_text_over_a_number(first)) return;
  header_ = true;
  name_columns();
}

bool CsvColumns::names_a_column(const Lines& first, const CsvOptions& options) const {
  const auto is_there = [&](const std::string& name) {
    return !parse(name) && std::any_of(first[0].begin(), first[0].end(),
                                       [&](const std::string& field) { return trimmed(field) == name; });
  };
  for (const auto* names : {&options.targets, &options.features, &options.categorical})
    if (std::any_of(names->begin(), names->end(), is_there)) return true;
  return std::any_of(options.categories.begin(), options.categories.end(),
                     [&](const auto& column) { return is_there(column.first); });
}

// In a column where a number is expected.
bool CsvColumns::has_text_over_a_number(const Lines& first) const {
  const auto is_text = [&](std::size_t line, std::size_t index) {
    const std::string_view field = trimmed(first[line][index]);
    return !is_missing(field) && !parse(field);
  };
  for (const auto* columns : {&features_, &targets_})
    for (const Column& column : *columns)
      if (!column.categorical && is_text(0, column.index) &&
          (first.size() < 2 || first[1].size() <= column.index || !is_text(1, column.index)))
        return true;
  return false;
}

void CsvColumns::choose_columns(const CsvOptions& options) {
  features_.clear();
  targets_.clear();
  categories_.clear();
  std::vector<char> is_target(names_.size()), is_categorical(names_.size());
  for (const std::string& name : options.categorical) is_categorical[find(name)] = 1;
  for (const auto& [name, texts] : options.categories)
    if (const auto index = find_if_any(name)) is_categorical[*index] = 1;
  const auto add = [&](std::vector<Column>& to, std::size_t index) {
    to.push_back({index, is_categorical[index] != 0, &to == &targets_});
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
  know_categories(options);
}

void CsvColumns::know_categories(const CsvOptions& options) {
  for (const auto& [name, texts] : options.categories) {
    const auto index = find_if_any(name);
    const auto found = index ? categories_.find(*index) : categories_.end();
    if (found == categories_.end()) continue;  // Of a column that is not there, or not used.
    found->second.known = true;
    for (const std::string& text : texts)
      if (!found->second.codes.emplace(text, static_cast<float>(found->second.codes.size())).second)
        throw InvalidArgument(fmt::format(
            "load_csv: categories of column \"{}\": \"{}\" is there twice; name each once", shown(name), shown(text)));
  }
}

std::optional<std::size_t> CsvColumns::find_if_any(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number < names_.size()) return number;
  return std::nullopt;
}

std::size_t CsvColumns::find(const std::string& name) const {
  if (const auto found = find_if_any(name)) return *found;
  std::string known;
  for (std::size_t i = 0; i < names_.size() && i < 30; ++i) known += (i == 0 ? "" : ", ") + shown(names_[i]);
  throw NotFound(fmt::format("{}: there is no column \"{}\"; there are: {}{}", path_, shown(name), known,
                             header_ ? "" : " (the file is read as one without a header)"));
}

// Counted from 1, as lines are. A column without a name is called by its number, from 0.
std::string CsvColumns::described(std::size_t index) const {
  return fmt::format("column {} ({}\"{}\")", index + 1, header_ ? "" : "called ", shown(names_[index]));
}

bool CsvColumns::is_kept(const CsvReader& reader) const {
  if (reader.fields().size() != names_.size())
    reader.corrupt(fmt::format("has {}, the first line {}", counted(reader.fields().size(), "field"), names_.size()));
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
  for (auto& [index, categories] : categories_) {
    const std::string_view text = trimmed(reader.fields()[index]);
    if (!categories.known && !is_missing(text)) categories.codes.emplace(text, 0.f);
  }
}

// What takes the place of a field that is empty.
float CsvColumns::fill_in(const CsvReader& reader, const Column& column) const {
  const std::string where = described(column.index);
  if (missing_ == Missing::kError)
    reader.corrupt(fmt::format("{} is empty; say what missing values are with `missing`", where));
  if (column.is_target)
    reader.corrupt(
        fmt::format("{} is empty, and a target is not made up; leave such lines out with `missing` \"drop\"", where));
  if (column.categorical && missing_ == Missing::kZero)
    reader.corrupt(
        fmt::format("{} is empty, and 0 is a category; leave such lines out with `missing` \"drop\"", where));
  return missing_ == Missing::kZero ? 0.f : std::nanf("");
}

float CsvColumns::code(const CsvReader& reader, const Column& column, std::string_view text) const {
  const Categories& categories = categories_.at(column.index);
  const auto found = categories.codes.find(text);
  if (found != categories.codes.end()) return found->second;
  if (!categories.known) reader.corrupt(fmt::format("{}: the file has changed", described(column.index)));
  constexpr std::size_t kShown = 20;
  std::vector<std::string_view> in_order(categories.codes.size());
  for (const auto& [known, number] : categories.codes) in_order[static_cast<std::size_t>(number)] = known;
  std::string list;
  for (std::size_t i = 0; i < in_order.size() && i < kShown; ++i) list += (i ? ", " : "") + shown(in_order[i]);
  if (in_order.size() > kShown) list += fmt::format(", and {} more", in_order.size() - kShown);
  reader.corrupt(
      fmt::format("{}: \"{}\" is no known category; known are: {}", described(column.index), shown(text), list));
}

float CsvColumns::number(const CsvReader& reader, const Column& column) const {
  const std::string_view text = trimmed(reader.fields()[column.index]);
  if (is_missing(text)) return fill_in(reader, column);
  if (column.categorical) return code(reader, column, text);
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

CsvCategories CsvColumns::categories() const {
  CsvCategories result;
  for (const auto& [index, categories] : categories_) {
    result.emplace_back(names_[index], std::vector<std::string>(categories.codes.size()));
    for (const auto& [text, code] : categories.codes) result.back().second[static_cast<std::size_t>(code)] = text;
  }
  return result;
}

}  // namespace plimsoll
