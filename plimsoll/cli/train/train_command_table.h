// TrainingTable: which columns of a CSV are trained with, and how, according to the options and the model.
//
//   TrainingTable table("prices.csv", options, {}, nullptr);      // No model yet: table.plain_model() says which to
//   make table.standardize(true);                                      // One more pass: mean and deviation
//   table.train(), table.validation()                             // Parts of table.file()
//   table.columns().save("trained")                               // For predictions
//
// Dates are left out unless they are named among the features, and so are ignored columns. Text becomes numbers. With a
// look-back the inputs are all columns, including the past of the targets; otherwise all but the targets. Targets are
// the last columns. Throws NotFound for columns that do not exist, InvalidArgument for data that cannot be trained
// with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/cli/options.h"
#include "plimsoll/cli/train/new_command_models.h"
#include "plimsoll/cli/train/table_columns.h"
#include "plimsoll/model/data/csv_file.h"
#include "plimsoll/model/model.h"

namespace plimsoll::internal {

struct DataOptions {
  std::vector<std::string> targets = {};      // Columns of a CSV; default: the last ones.
  std::vector<std::string> categorical = {};  // Columns of text.
  std::string missing = "error";
  std::string header = "auto";
  std::vector<std::string> features = {}, ignore = {};
  std::int64_t look_back = 0, horizon = 1;
  double validation_split = 0;
  std::string standardize = "auto";
  std::uint64_t seed = 0;  // For the split.
  bool quiet = false;      // No progress.

  // The option that chooses columns, if there is one; nullptr: all is left to the data, or to an earlier training.
  const char* choose_columns() const;
  // The option that asks for something else than these columns; nullptr when none does.
  const char* differs_from(const TableColumns& known) const;
  std::optional<bool> has_header() const { return header == "auto" ? std::nullopt : std::optional(header == "yes"); }
};
void add_header_option(Command& command, DataOptions& options);
void add_missing_option(Command& command, DataOptions& options, const char* what);
void add_table_options(Command& command, DataOptions& options);

// The model's inputs and outputs: shapes including the batch, dtypes, names.
struct ModelEnds {
  explicit ModelEnds(const Model& model);

  Shapes inputs, outputs;
  std::vector<DType> input_dtypes;
  std::vector<std::string> input_names, output_names;
};
std::int64_t elements_of(const Shape& with_batch);  // Of one example; -1 when that is not known.

// A line on standard error once reading has taken a second, if that is a terminal.
CsvFile::Progress reading_progress(const std::string& path, bool quiet);

class TrainingTable {
 public:
  // `known`: the columns of a training that is continued. `model`: nullptr when there is none yet.
  TrainingTable(const std::string& path, const DataOptions& options, const TableColumns& known, const ModelEnds* model);

  const CsvFile& file() const noexcept { return *file_; }
  const std::string& path() const noexcept { return path_; }
  const TableColumns& columns() const noexcept { return columns_; }
  const CsvPart& train() const noexcept { return train_; }
  const std::optional<CsvPart>& validation() const noexcept { return validation_; }  // Of a split.
  bool one_hot() const noexcept { return one_hot_; }  // There is a target column for each output of the model.
  std::size_t dropped_rows() const { return file_->described().dropped_rows; }

  // A model for these columns. `numbers`: the targets are numbers, whatever they look like.
  PlainModel plain_model(bool numbers) const;
  // Throws InvalidArgument for a model with other inputs or outputs. `labels`: its targets are class numbers.
  void require_fit(const ModelEnds& model, bool labels) const;
  void require_shares() const;  // Requires targets between 0 and 1, one for each class.
  // Unless scales are already known. `targets`: including those.
  void standardize(bool targets);
  // Describes the choice, for people.
  std::string summary() const;

 private:
  void require_categories(const DataOptions& options) const;
  struct Choice;
  void split(double share, std::uint64_t seed);
  void require_order(const std::string& date) const;
  const std::vector<CsvStatistics>& statistics() const;

  const std::string path_;
  const bool quiet_;
  std::optional<CsvFile> file_;
  TableColumns columns_;
  std::vector<std::string> left_out_;  // Dates.
  CsvPart train_;
  std::optional<CsvPart> validation_;
  bool one_hot_ = false;
  mutable std::optional<std::vector<CsvStatistics>> statistics_;
};

}  // namespace plimsoll::internal
