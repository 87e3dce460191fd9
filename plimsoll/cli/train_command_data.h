// Data of `plimsoll train` and `plimsoll predict`: files as tensors of the shapes that a model takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/model/dataset.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

struct DataOptions {
  std::vector<std::string> targets = {};      // Columns of a CSV; left out: the last ones.
  std::vector<std::string> categorical = {};  // Columns of text.
  std::string missing = "error";
};

// What the model takes: shapes with the batch in front, dtypes, names.
struct ModelEnds {
  explicit ModelEnds(const Model& model);

  Shapes inputs, outputs;
  std::vector<DType> input_dtypes;
  std::vector<std::string> input_names, output_names;
};

// Inputs and targets of a CSV (the targets are the last columns) or npz (x and y, or the names of inputs and outputs;
// with several inputs x0, x1, ..). A target is one column when the model's loss takes labels. Throws InvalidArgument
// for data the model cannot take, and as the readers do.
Example load_examples(const std::string& path, const Model& model, const DataOptions& options);

// Inputs alone, of a CSV, npy, npz, or JSON (as load_json_tensors reads it).
std::vector<Tensor> load_model_inputs(const std::string& path, const Model& model, const DataOptions& options);

// As the ending of the path says: .csv, .npy (one tensor), .npz, .json.
void save_tensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors);
void write_csv(const std::vector<Tensor>& tensors, FunctionRef<void(std::string_view row)> write);

}  // namespace plimsoll
