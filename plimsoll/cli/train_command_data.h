// Data of `plimsoll train` and `plimsoll predict`: files as tensors of the shapes that a model takes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/cli/table_columns.h"
#include "plimsoll/model/dataset.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

struct DataOptions {
  std::vector<std::string> targets = {};      // Columns of a CSV; left out: the last ones.
  std::vector<std::string> categorical = {};  // Columns of text.
  std::string missing = "error";
  std::string header = "auto";

  std::optional<bool> has_header() const { return header == "auto" ? std::nullopt : std::optional(header == "yes"); }
};
void add_header_option(CLI::App& command, DataOptions& options);
void add_missing_option(CLI::App& command, DataOptions& options, const char* what);

// What the model takes: shapes with the batch in front, dtypes, names.
struct ModelEnds {
  explicit ModelEnds(const Model& model);

  Shapes inputs, outputs;
  std::vector<DType> input_dtypes;
  std::vector<std::string> input_names, output_names;
};

// Examples, and what was left out of the file.
struct LoadedExamples {
  Example examples;
  std::size_t dropped_rows = 0;
  TableColumns columns = {};  // Of a CSV.
};
// Inputs and targets of a CSV (the targets are the last columns) or npz (x and y, or the names of inputs and outputs;
// with several inputs x0, x1, ..). A target is one column of labels, i32, when the model's loss takes them, else f32 of
// the outputs' shape. `columns`: those of the training data, for a CSV that goes with it. Throws InvalidArgument for
// data the model cannot take, and as the readers do.
LoadedExamples load_examples(const std::string& path, const Model& model, const DataOptions& options,
                             const TableColumns& columns = {});

// Inputs alone, of a CSV, npy, npz, or JSON (as load_json_tensors reads it).
struct LoadedInputs {
  std::vector<Tensor> inputs;
  Tensor lacking = {};  // bool [rows]: those that lack values, when such rows are to be dropped.
  std::size_t lacking_rows = 0;
};
LoadedInputs load_model_inputs(const std::string& path, const Model& model, const DataOptions& options,
                               const TableColumns& columns = {});

bool is_csv(const std::string& path);
// As the ending of the path says: .csv, .npy (one tensor), .npz, .json.
void save_tensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors);
void write_csv(const std::vector<Tensor>& tensors, FunctionRef<void(std::string_view row)> write);

}  // namespace plimsoll
