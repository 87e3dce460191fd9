// CsvColumns: which columns of a CSV file are wanted and how, and how a line becomes numbers.
//
// Made by a first pass over the file, which counts its rows and learns the categories that are not known. Throws as
// load_csv does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/dataset.h"
#include "plimsoll/model/internal/csv_reader.h"

namespace plimsoll {

class CsvColumns {
 public:
  CsvColumns(const std::string& path, const CsvOptions& options);

  std::size_t num_features() const noexcept { return features_.size(); }
  std::size_t num_targets() const noexcept { return targets_.size(); }
  std::size_t num_rows() const noexcept { return rows_; }  // Those that are kept.
  std::size_t dropped_rows() const noexcept { return dropped_; }
  bool has_header() const noexcept { return header_; }
  const std::vector<std::string>& all_names() const noexcept { return names_; }
  std::vector<std::string> names(bool of_targets) const;
  CsvCategories categories() const;

  // The next row that is kept, of a reader that stands behind the header. False at the end.
  bool read(CsvReader& reader, float* features, float* targets) const;
  void skip_header(CsvReader& reader) const;

 private:
  struct Column {
    std::size_t index = 0;
    bool categorical = false;
    bool is_target = false;
  };
  struct Categories {
    std::map<std::string, float, std::less<>> codes;
    bool known = false;  // From another file; else learned from this one.
  };
  using Lines = std::vector<std::vector<std::string>>;
  enum class Missing : unsigned char { kError, kZero, kNan, kDrop };

  void choose(const Lines& first, const CsvOptions& options);
  void choose_columns(const CsvOptions& options);
  bool names_a_column(const Lines& first, const CsvOptions& options) const;
  bool has_text_over_a_number(const Lines& first) const;
  void know_categories(const CsvOptions& options);
  std::optional<std::size_t> find_if_any(const std::string& name) const;
  std::size_t find(const std::string& name) const;
  void learn(CsvReader& reader);
  bool is_kept(const CsvReader& reader) const;
  float number(const CsvReader& reader, const Column& column) const;
  float fill_in(const CsvReader& reader, const Column& column) const;
  float code(const CsvReader& reader, const Column& column, std::string_view text) const;
  std::string described(std::size_t index) const;

  const std::string path_;
  Missing missing_ = Missing::kError;
  bool header_ = false;
  std::vector<std::string> names_;  // Of all columns.
  std::vector<Column> features_, targets_;
  std::map<std::size_t, Categories> categories_;  // By column.
  std::size_t rows_ = 0, dropped_ = 0;
};

}  // namespace plimsoll
