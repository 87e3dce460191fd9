// CsvColumns: which columns of a CSV file are wanted and how, and how a line becomes numbers.
//
// Made by a first pass over the file, which counts its rows and learns the categories. Throws as load_csv does.
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
  std::vector<std::string> names(bool of_targets) const;
  std::vector<std::pair<std::string, std::vector<std::string>>> categories() const;

  // The next row that is kept, of a reader that stands behind the header. False at the end.
  bool read(CsvReader& reader, float* features, float* targets) const;
  void skip_header(CsvReader& reader) const;

 private:
  struct Column {
    std::size_t index = 0;
    bool categorical = false;
  };
  enum class Missing : unsigned char { kError, kZero, kNan, kDrop };

  void choose(CsvReader& reader, const CsvOptions& options);
  std::size_t find(const std::string& name) const;
  void learn(CsvReader& reader);
  bool is_kept(const CsvReader& reader) const;
  float number(const CsvReader& reader, const Column& column) const;
  std::string described(std::size_t index) const;

  const std::string path_;
  Missing missing_ = Missing::kError;
  bool header_ = false;
  std::vector<std::string> names_;  // Of all columns.
  std::vector<Column> features_, targets_;
  std::map<std::size_t, std::map<std::string, float>> categories_;
  std::size_t rows_ = 0, dropped_ = 0;
};

}  // namespace plimsoll
