// TableColumns: how the columns of the CSV that a model was trained with became its inputs and targets.
//
//   const TableColumns columns = TableColumns::of(load_csv("train.csv", options));
//   columns.scales = ..;                                               // What the numbers were standardised with.
//   columns.save(folder);                                              // FOLDER/columns.json, beside the model
//   load_csv("new.csv", TableColumns::load(file).options_for("new.csv", ..));   // The same numbers for the same texts
//
// Another file is read by the names of its columns, or by their positions without a header; it may lack the targets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

struct TableColumns {
  std::vector<std::string> names;  // Of all columns of the file, in order; numbers when it has no header.
  bool has_header = false;
  std::vector<std::string> features, targets;
  CsvCategories categories;
  std::vector<std::string> dates = {};  // Features that are dates.
  std::vector<CsvScale> scales = {};    // Of features and targets that are standardised.
  std::int64_t look_back = 0;           // Above 0: an example is that many rows, and the targets
  std::int64_t horizon = 1;             // of that many rows after them.

  static constexpr const char* kFile = "columns.json";
  static TableColumns of(const CsvTable& table);
  // Throws NotFound, Corruption.
  static TableColumns load(const std::string& path);
  // Throw InvalidArgument for texts that are not UTF-8.
  std::string to_json() const;
  void save(const std::string& folder) const;

  bool is_set() const noexcept { return !names.empty(); }
  // Options to read another file. Throws InvalidArgument for one with other columns.
  CsvOptions options_for(const std::string& path, std::optional<bool> header, bool with_targets) const;
  // Converts predictions to the file's units: value * deviation + mean, for each target; empty when they are not
  // standardised.
  std::vector<CsvScale> target_scales() const;
  // The names of its single target's classes; empty when that is a number.
  std::vector<std::string> classes() const;
};

}  // namespace plimsoll::internal
