#include "plimsoll/model/data/csv_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/philox.h"
#include "plimsoll/model/data/csv_field.h"
#include "plimsoll/model/data/csv_rows.h"
#include "plimsoll/model/data/row_source.h"

namespace plimsoll {
namespace {

constexpr std::size_t kLookedAt = 1000;  // Lines.

CsvKind kind_of(std::string_view field) {
  const std::string_view text = trimmed_field(field);
  if (is_missing_field(text)) return CsvKind::kEmpty;
  if (number_in<double>(text)) return CsvKind::kNumber;
  return date_in(text) ? CsvKind::kDate : CsvKind::kText;
}

// How often each kind occurred in a column, except in the first line.
struct Seen {
  std::size_t counts[4] = {};
  void add(CsvKind kind) { ++counts[static_cast<std::size_t>(kind)]; }
  std::size_t of(CsvKind kind) const { return counts[static_cast<std::size_t>(kind)]; }
  // One wrong number in a line is an error there, not a reason to read the whole column as text.
  CsvKind most() const {
    if (of(CsvKind::kNumber) > 0 && of(CsvKind::kNumber) >= of(CsvKind::kText)) return CsvKind::kNumber;
    if (of(CsvKind::kDate) > 0 && of(CsvKind::kDate) >= of(CsvKind::kText)) return CsvKind::kDate;
    return of(CsvKind::kText) > 0 ? CsvKind::kText : of(CsvKind::kNumber) > 0 ? CsvKind::kNumber : CsvKind::kEmpty;
  }
};

}  // namespace

CsvLook look_at_csv(const std::string& path, std::optional<bool> header, const std::vector<std::string>& names) {
  CsvPass pass(path, ',');
  CsvReader& reader = pass.reader();
  if (!reader.next()) throw Corruption(fmt::format("{}: has no lines", path));
  const std::vector<std::string> first = reader.fields();
  std::vector<Seen> seen(first.size());
  for (std::size_t line = 1; line < kLookedAt && reader.next(); ++line)
    for (std::size_t i = 0; i < std::min(first.size(), reader.fields().size()); ++i)
      seen[i].add(kind_of(reader.fields()[i]));
  CsvLook look;
  look.has_header = header.value_or(false);
  const bool is_all_text = std::all_of(first.begin(), first.end(),
                                       [](const std::string& field) { return kind_of(field) == CsvKind::kText; });
  const bool is_alone =
      std::all_of(seen.begin(), seen.end(), [](const Seen& column) { return column.most() == CsvKind::kEmpty; });
  if (!header && is_all_text && is_alone) look.has_header = true;  // There is no other line.
  if (!header)
    for (std::size_t i = 0; i < first.size() && !look.has_header; ++i) {
      const CsvKind below = seen[i].most();
      const bool over_others = below == CsvKind::kNumber || below == CsvKind::kDate;
      look.has_header = (kind_of(first[i]) == CsvKind::kText && over_others) ||
                        std::find(names.begin(), names.end(), trimmed_field(first[i])) != names.end();
    }
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!look.has_header) seen[i].add(kind_of(first[i]));
    look.columns.push_back(
        {look.has_header ? std::string(trimmed_field(first[i])) : std::to_string(i), seen[i].most()});
  }
  return look;
}

bool CsvPart::has(std::int64_t row) const noexcept {
  if (row < begin || row >= end) return false;
  if (from <= 0 && to >= 1) return true;
  Philox random(seed, 0, static_cast<std::uint64_t>(row));
  const double draw = random.below(1u << 30) / static_cast<double>(1u << 30);
  return draw >= from && draw < to;
}

CsvFile::CsvFile(const std::string& path, const CsvOptions& options, Progress progress)
    : columns_(std::make_shared<const CsvColumns>(path, options, progress)), progress_(std::move(progress)) {}

CsvTable CsvFile::described() const {
  return {.features = {},
          .targets = {},
          .feature_names = columns_->names(false),
          .target_names = columns_->names(true),
          .column_names = columns_->all_names(),
          .has_header = columns_->has_header(),
          .categories = columns_->categories(),
          .dropped_rows = columns_->dropped_rows()};
}

std::size_t CsvFile::num_rows() const noexcept { return columns_->num_rows(); }
std::size_t CsvFile::num_examples(const CsvPart& part) const { return csv_examples_of(*columns_, part); }
std::size_t CsvFile::row_bytes() const noexcept {
  return (columns_->num_features() + columns_->num_targets()) * sizeof(float);
}

std::vector<CsvStatistics> CsvFile::measure(const CsvPart& part) const {
  const std::size_t features = columns_->num_features(), all = features + columns_->num_targets();
  std::vector<CsvStatistics> result(all);
  std::vector<double> values(all), squares(all), counts(all), before(all, -INFINITY);
  const auto pass = columns_->open(progress_);
  for (std::int64_t row = 0; row < part.end && columns_->skip(pass->reader()); ++row) {
    if (!part.has(row)) continue;
    columns_->take_plain(pass->reader(), values.data());
    for (std::size_t i = 0; i < all; ++i) {
      const double value = values[i];
      if (std::isnan(value)) continue;
      CsvStatistics& column = result[i];
      column.smallest = counts[i] == 0 ? value : std::min(column.smallest, value);
      column.largest = counts[i] == 0 ? value : std::max(column.largest, value);
      column.is_whole = column.is_whole && value == std::floor(value);
      column.ascends = column.ascends && value >= before[i];
      before[i] = value;
      const double from_mean = value - column.mean;
      column.mean += from_mean / ++counts[i];
      squares[i] += from_mean * (value - column.mean);
    }
  }
  const CsvTable names = described();
  for (std::size_t i = 0; i < all; ++i) {
    result[i].column = i < features ? names.feature_names[i] : names.target_names[i - features];
    result[i].deviation = counts[i] > 0 ? std::sqrt(squares[i] / counts[i]) : 0;
    result[i].is_category = columns_->is_category(i);
    result[i].is_target = i >= features;
  }
  return result;
}

void CsvFile::set_scales(const std::vector<CsvScale>& scales) {
  columns_ = std::make_shared<const CsvColumns>(columns_->with_scales(scales));
}

Dataset CsvFile::held(const CsvPart& part) const { return hold_csv(columns_, part, progress_); }
Dataset CsvFile::streamed(const CsvPart& part) const { return stream_csv(columns_, part); }

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const auto columns = std::make_shared<const CsvColumns>(path, options);
  const Example rows = read_csv_rows(columns, {}, columns->num_rows());
  return {.features = rows.inputs[0],
          .targets = rows.targets[0],
          .feature_names = columns->names(false),
          .target_names = columns->names(true),
          .column_names = columns->all_names(),
          .has_header = columns->has_header(),
          .categories = columns->categories(),
          .dropped_rows = columns->dropped_rows()};
}

CsvCategories load_csv_categories(const std::string& path, const CsvOptions& options) {
  return CsvColumns(path, options).categories();
}

std::vector<std::string> load_csv_first_line(const std::string& path, char delimiter) {
  CsvPass pass(path, delimiter);
  if (!pass.reader().next()) throw Corruption(fmt::format("{}: has no lines", path));
  return pass.reader().fields();
}

}  // namespace plimsoll
