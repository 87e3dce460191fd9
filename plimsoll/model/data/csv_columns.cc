#include "plimsoll/model/data/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/csv_field.h"
#include "plimsoll/model/data/plural.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostCategories = 100'000;

bool is_index(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

CsvPass::CsvPass(const std::string& path, char delimiter, std::function<void(double)> progress)
    : file_(path),
      progress_(std::move(progress)),
      file_bytes_(static_cast<double>(std::filesystem::file_size(path))),
      reader_([this](std::span<char> to) { return feed(to); }, path, delimiter) {}

std::size_t CsvPass::feed(std::span<char> to) {
  if (progress_ && file_bytes_ > 0) progress_(static_cast<double>(file_.packed_offset()) / file_bytes_);
  return file_.read(to);
}

CsvColumns::CsvColumns(const std::string& path, const CsvOptions& options, const Progress& progress)
    : path_(path), delimiter_(options.delimiter), look_back_(options.look_back), horizon_(options.horizon) {
  if (look_back_ < 0 || horizon_ < (options.all_features ? 0 : 1))
    throw InvalidArgument(
        fmt::format("load_csv: look_back is {}, horizon {}; give 0 and 1, or more", look_back_, horizon_));
  const std::pair<std::string_view, Missing> choices[] = {
      {"error", Missing::kError}, {"zero", Missing::kZero}, {"nan", Missing::kNan}, {"drop", Missing::kDrop}};
  const auto chosen = std::find_if(std::begin(choices), std::end(choices),
                                   [&](const auto& choice) { return choice.first == options.missing; });
  if (chosen == std::end(choices))
    throw InvalidArgument(
        fmt::format("load_csv: missing is \"{}\"; use \"error\", \"zero\", \"nan\" or \"drop\"", options.missing));
  missing_ = chosen->second;
  Lines first;  // Two lines are enough to recognize a header.
  {
    CsvPass pass(path, delimiter_);
    while (first.size() < 2 && pass.reader().next()) first.push_back(pass.reader().fields());
  }
  if (first.empty()) throw Corruption(fmt::format("{}: has no lines", path));
  choose(first, options);
  const auto pass = open(progress);
  while (pass->reader().next()) learn(pass->reader());
  for (auto& [column, categories] : categories_) {
    if (categories.known) continue;
    float next = 0;
    for (auto& [text, code] : categories.codes) code = next++;
  }
}

void CsvColumns::choose(const Lines& first, const CsvOptions& options) {
  header_ = options.header.value_or(has_names_of(first, options));
  const auto name_columns = [&] {
    names_.clear();
    for (std::size_t i = 0; i < first[0].size(); ++i)
      names_.push_back(header_ ? std::string(trimmed_field(first[0][i])) : std::to_string(i));
    choose_columns(options);
  };
  name_columns();
  if (header_ || options.header || !has_text_over_a_number(first)) return;
  header_ = true;
  name_columns();
}

// Whether columns are selected by name, or the first line has the name of a column whose categories are known.
bool CsvColumns::has_names_of(const Lines& first, const CsvOptions& options) const {
  for (const auto* names : {&options.targets, &options.features, &options.categorical, &options.dates})
    if (!std::all_of(names->begin(), names->end(), is_index)) return true;
  const auto is_there = [&](const std::string& name) {
    return !is_index(name) && std::any_of(first[0].begin(), first[0].end(),
                                          [&](const std::string& field) { return trimmed_field(field) == name; });
  };
  return std::any_of(options.categories.begin(), options.categories.end(),
                     [&](const auto& column) { return is_there(column.first); });
}

// Whether there is text in a column where a number is expected.
bool CsvColumns::has_text_over_a_number(const Lines& first) const {
  const auto is_text = [&](std::size_t line, std::size_t index) {
    const std::string_view field = trimmed_field(first[line][index]);
    return !is_missing_field(field) && !number_in<float>(field) && !date_in(field);
  };
  for (const auto* columns : {&features_, &targets_})
    for (const Column& column : *columns)
      if (column.kind != Kind::kCategory && is_text(0, column.index) &&
          (first.size() < 2 || first[1].size() <= column.index || !is_text(1, column.index)))
        return true;
  return false;
}

void CsvColumns::choose_columns(const CsvOptions& options) {
  features_.clear();
  targets_.clear();
  categories_.clear();
  std::vector<char> is_target(names_.size());
  std::vector<Kind> kinds(names_.size(), Kind::kNumber);
  for (const std::string& name : options.dates) kinds[find(name)] = Kind::kDate;
  for (const std::string& name : options.categorical) kinds[find(name)] = Kind::kCategory;
  for (const auto& [name, texts] : options.categories)
    if (const auto index = find_if_any(name)) kinds[*index] = Kind::kCategory;
  const auto add = [&](std::vector<Column>& to, std::size_t index) {
    to.push_back({index, kinds[index], &to == &targets_});
    if (kinds[index] == Kind::kCategory) categories_[index];
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
  set_scales(options.scales);
}

void CsvColumns::set_scales(const std::vector<CsvScale>& scales) {
  for (auto* columns : {&features_, &targets_})
    for (Column& column : *columns) column.scale.reset();
  for (const CsvScale& scale : scales) {
    if (!(scale.deviation > 0) || !std::isfinite(scale.deviation) || !std::isfinite(scale.mean))
      throw InvalidArgument(
          fmt::format("load_csv: the scale of column \"{}\" has mean {} and deviation {}; give a "
                      "deviation above 0",
                      shown_field(scale.column), scale.mean, scale.deviation));
    const auto index = find_if_any(scale.column);
    for (auto* columns : {&features_, &targets_})
      for (Column& column : *columns)
        if (index && column.index == *index && column.kind != Kind::kCategory) column.scale = scale;
  }
}

CsvColumns CsvColumns::with_scales(const std::vector<CsvScale>& scales) const {
  CsvColumns result = *this;
  result.set_scales(scales);
  return result;
}

void CsvColumns::know_categories(const CsvOptions& options) {
  for (const auto& [name, texts] : options.categories) {
    const auto index = find_if_any(name);
    const auto found = index ? categories_.find(*index) : categories_.end();
    if (found == categories_.end()) continue;  // The column does not exist, or is not used.
    found->second.known = true;
    for (const std::string& text : texts)
      if (!found->second.codes.emplace(text, static_cast<float>(found->second.codes.size())).second)
        throw InvalidArgument(
            fmt::format("load_csv: categories of column \"{}\": \"{}\" is there twice; name each once",
                        shown_field(name), shown_field(text)));
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
  for (std::size_t i = 0; i < names_.size() && i < 30; ++i) known += (i == 0 ? "" : ", ") + shown_field(names_[i]);
  throw NotFound(fmt::format("{}: there is no column \"{}\"; there are: {}{}", path_, shown_field(name), known,
                             header_ ? "" : " (the file is read as one without a header)"));
}

// Counted from 1, like lines.
std::string CsvColumns::described(std::size_t index) const {
  return header_ ? fmt::format("column {} (\"{}\")", index + 1, shown_field(names_[index]))
                 : fmt::format("column {}", index + 1);
}

bool CsvColumns::is_kept(const CsvReader& reader) const {
  if (reader.fields().size() != names_.size())
    reader.corrupt(fmt::format("has {}, the first line {}", plural(reader.fields().size(), "field"), names_.size()));
  if (missing_ != Missing::kDrop) return true;
  for (const auto* columns : {&features_, &targets_})
    for (const Column& column : *columns)
      if (is_missing_field(trimmed_field(reader.fields()[column.index]))) return false;
  return true;
}

void CsvColumns::learn(CsvReader& reader) {
  if (!is_kept(reader)) {
    ++dropped_;
    return;
  }
  ++rows_;
  for (auto& [index, categories] : categories_) {
    const std::string_view text = trimmed_field(reader.fields()[index]);
    if (categories.known || is_missing_field(text)) continue;
    categories.codes.emplace(text, 0.f);
    if (categories.codes.size() > kMostCategories)
      reader.corrupt(fmt::format("{} has more than {} different texts; they are not categories, leave the column out",
                                 described(index), kMostCategories));
  }
}

// The value for an empty field.
float CsvColumns::fill_in(const CsvReader& reader, const Column& column) const {
  const std::string where = described(column.index);
  if (missing_ == Missing::kError)
    reader.corrupt(
        fmt::format("{} is empty; say what missing values become (--missing, CsvOptions.missing): \"zero\", \"nan\", "
                    "or \"drop\" such lines",
                    where));
  if (column.is_target)
    reader.corrupt(fmt::format("{} is empty, and a target is not made up; \"drop\" lines with missing values", where));
  if (column.kind == Kind::kCategory && missing_ == Missing::kZero)
    reader.corrupt(fmt::format("{} is empty, and 0 is a category; \"drop\" lines with missing values", where));
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
  for (std::size_t i = 0; i < in_order.size() && i < kShown; ++i) list += (i ? ", " : "") + shown_field(in_order[i]);
  if (in_order.size() > kShown) list += fmt::format(", and {} more", in_order.size() - kShown);
  reader.corrupt(fmt::format("{}: \"{}\" is not a known category; known are: {}", described(column.index),
                             shown_field(text), list));
}

double CsvColumns::value(const CsvReader& reader, const Column& column, std::string_view text) const {
  if (column.kind == Kind::kCategory) return static_cast<double>(code(reader, column, text));
  const std::optional<double> value = column.kind == Kind::kDate ? date_in(text) : number_in<double>(text);
  if (!value)
    reader.corrupt(
        fmt::format("{}: \"{}\" is not a {}; name the column among the categorical ones (--categorical) if it is text",
                    described(column.index), shown_field(text),
                    column.kind == Kind::kDate ? "date such as 2024-03-01 12:30" : "number"));
  return *value;
}

float CsvColumns::number(const CsvReader& reader, const Column& column) const {
  const std::string_view text = trimmed_field(reader.fields()[column.index]);
  if (is_missing_field(text)) {
    const float filled = fill_in(reader, column);
    return column.scale && filled == 0 ? static_cast<float>((0 - column.scale->mean) / column.scale->deviation)
                                       : filled;
  }
  if (column.scale)
    return static_cast<float>((value(reader, column, text) - column.scale->mean) / column.scale->deviation);
  if (column.kind != Kind::kNumber) return static_cast<float>(value(reader, column, text));
  if (const std::optional<float> plain = number_in<float>(text)) return *plain;
  value(reader, column, text);  // Refuses it, unless only a double can hold it.
  reader.corrupt(fmt::format("{}: \"{}\" is larger than float32 holds; standardise the column, or leave it out",
                             described(column.index), shown_field(text)));
}

std::unique_ptr<CsvPass> CsvColumns::open(const Progress& progress) const {
  auto pass = std::make_unique<CsvPass>(path_, delimiter_, progress);
  if (header_) pass->reader().next();
  return pass;
}

bool CsvColumns::skip(CsvReader& reader) const {
  do {
    if (!reader.next()) return false;
  } while (!is_kept(reader));
  return true;
}

void CsvColumns::take(const CsvReader& reader, float* features, float* targets) const {
  for (const Column& column : features_) *features++ = number(reader, column);
  for (const Column& column : targets_) *targets++ = number(reader, column);
}

bool CsvColumns::read(CsvReader& reader, float* features, float* targets) const {
  if (!skip(reader)) return false;
  take(reader, features, targets);
  return true;
}

void CsvColumns::take_plain(const CsvReader& reader, double* values) const {
  for (std::size_t i = 0; i < features_.size() + targets_.size(); ++i) {
    const std::string_view text = trimmed_field(reader.fields()[column(i).index]);
    values[i] = is_missing_field(text) ? std::nan("") : value(reader, column(i), text);
  }
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

}  // namespace plimsoll::internal
