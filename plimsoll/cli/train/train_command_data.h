// The data of `plimsoll train` and `plimsoll predict`: files as datasets and tensors with the shapes of a model.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/cli/train/table_columns.h"
#include "plimsoll/cli/train/train_command_table.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/model.h"

namespace plimsoll::internal {

// Batches to train with, and their memory besides what a forecast of the model counts.
struct TrainingData {
  Dataset train, validation;
  std::size_t examples = 0;
  std::size_t held_bytes = 0;      // Of files that are held in memory, on the budget.
  bool streams = false;            // CSV files are read again in each epoch.
  std::size_t shuffled_rows = 0;   // The number of examples each one is drawn from; 0: in the order of the file.
  bool shards_parameters = false;  // The budget has room for a step only so.
};

struct BatchPlan {
  std::size_t batch = 32;
  bool shuffle = true;
  std::optional<std::uint64_t> seed = {};
  std::optional<std::size_t> budget = {};
  ForecastOptions together = {};  // The ranks of a job and how they share the work; its batch size is not used.
};

// A CSV is held when the budget (or the device) has room for it besides the model's step, otherwise it is streamed and
// shuffled in a pool that fits.
TrainingData make_training_data(const TrainingTable& table, const CsvFile* validation, const Model& model,
                                const BatchPlan& plan);

// Arrays x and y of an npz, or the names of inputs and outputs; with several inputs x0, x1, .. Always held: throws
// OutOfMemory, with the numbers, before they are read when the budget has no room.
TrainingData make_training_data(const std::string& npz, const std::string& validation, double validation_split,
                                const Model& model, const BatchPlan& plan);
// Whether y has a number for each class of the model's single output.
bool npz_is_one_hot(const std::string& path, const ModelEnds& model);

// Inputs from an npy, npz, or JSON (as load_json_tensors reads it), with the model's shapes and dtypes.
std::vector<Tensor> load_model_inputs(const std::string& path, const Model& model);
// Reshaped when the number of elements matches, and cast.
Tensor fitted(const Tensor& tensor, const Shape& shape, DType dtype);

bool is_csv(const std::string& path);
// `done`: what is done with such files here.
void require_form(const std::string& path, const std::vector<std::string>& forms, const char* done = "read");
// In the format of the path's extension: .csv, .npy (one tensor), .npz, .json.
void save_tensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors);
void write_csv(const std::vector<Tensor>& tensors, FunctionRef<void(std::string_view row)> write);

}  // namespace plimsoll::internal
