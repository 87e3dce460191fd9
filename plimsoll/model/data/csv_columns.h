// CsvColumns: which columns of a CSV file are used and how, and how a line becomes numbers.
//
// Made by a first pass over the file, which counts its rows and collects unknown categories. Throws as load_csv does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/data/csv_reader.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/data/gzip_file.h"

namespace plimsoll::internal {

// One pass over a file, starting with its first line. `progress` is called now and then with the fraction read so far.
class CsvPass {
 public:
  CsvPass(const std::string& path, char delimiter, std::function<void(double)> progress = {});
  CsvReader& reader() noexcept { return reader_; }

 private:
  std::size_t feed(std::span<char> to);

  GzipFile file_;
  const std::function<void(double)> progress_;
  const double file_bytes_;
  CsvReader reader_;
};

class CsvColumns {
 public:
  using Progress = std::function<void(double)>;
  CsvColumns(const std::string& path, const CsvOptions& options, const Progress& progress = {});

  std::size_t num_features() const noexcept { return features_.size(); }
  std::size_t num_targets() const noexcept { return targets_.size(); }
  std::size_t num_rows() const noexcept { return rows_; }  // Of the kept rows.
  std::size_t dropped_rows() const noexcept { return dropped_; }
  bool has_header() const noexcept { return header_; }
  const std::string& path() const noexcept { return path_; }
  std::int64_t look_back() const noexcept { return look_back_; }  // 0: rows are examples.
  std::int64_t horizon() const noexcept { return horizon_; }
  const std::vector<std::string>& all_names() const noexcept { return names_; }
  std::vector<std::string> names(bool of_targets) const;
  CsvCategories categories() const;

  std::unique_ptr<CsvPass> open(const Progress& progress = {}) const;  // Positioned after the header.
  // The next row that is kept, from a reader positioned after the header. False at the end.
  bool read(CsvReader& reader, float* features, float* targets) const;
  bool skip(CsvReader& reader) const;  // The same, without its numbers.
  // The numbers of a row that was just skipped.
  void take(const CsvReader& reader, float* features, float* targets) const;
  // The values of such a row, features first, as in the file; NaN where they are missing.
  void take_plain(const CsvReader& reader, double* values) const;
  bool is_category(std::size_t i) const { return column(i).kind == Kind::kCategory; }  // Features, then targets.
  CsvColumns with_scales(const std::vector<CsvScale>& scales) const;

 private:
  enum class Kind : unsigned char { kNumber, kCategory, kDate };
  struct Column {
    std::size_t index = 0;
    Kind kind = Kind::kNumber;
    bool is_target = false;
    std::optional<CsvScale> scale = {};
  };
  struct Categories {
    std::map<std::string, float, std::less<>> codes;
    bool known = false;  // From another file; otherwise learned from this one.
  };
  using Lines = std::vector<std::vector<std::string>>;
  enum class Missing : unsigned char { kError, kZero, kNan, kDrop };

  void choose(const Lines& first, const CsvOptions& options);
  void choose_columns(const CsvOptions& options);
  bool has_names_of(const Lines& first, const CsvOptions& options) const;
  bool has_text_over_a_number(const Lines& first) const;
  void know_categories(const CsvOptions& options);
  std::optional<std::size_t> find_if_any(const std::string& name) const;
  std::size_t find(const std::string& name) const;
  void set_scales(const std::vector<CsvScale>& scales);
  const Column& column(std::size_t i) const {
    return i < features_.size() ? features_[i] : targets_[i - features_.size()];
  }
  void learn(CsvReader& reader);
  bool is_kept(const CsvReader& reader) const;
  float number(const CsvReader& reader, const Column& column) const;
  double value(const CsvReader& reader, const Column& column, std::string_view text) const;
  float fill_in(const CsvReader& reader, const Column& column) const;
  float code(const CsvReader& reader, const Column& column, std::string_view text) const;
  std::string described(std::size_t index) const;

  std::string path_;
  char delimiter_ = ',';
  std::int64_t look_back_ = 0, horizon_ = 1;
  Missing missing_ = Missing::kError;
  bool header_ = false;
  std::vector<std::string> names_;  // Of all columns.
  std::vector<Column> features_, targets_;
  std::map<std::size_t, Categories> categories_;  // By column.
  std::size_t rows_ = 0, dropped_ = 0;
};

}  // namespace plimsoll::internal
