#include "plimsoll/cli/train_command_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/counted.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll {
namespace {

std::string form_of(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() == ".gz") name.replace_extension();
  return name.extension().string();
}

std::int64_t elements_of(const Shape& with_batch) {
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < with_batch.rank(); ++axis) {
    if (with_batch[axis] == kUnknownSize) return kUnknownSize;
    count *= with_batch[axis];
  }
  return count;
}

// Of the model's shape, when there are as many elements.
Tensor fitted(const Tensor& tensor, const Shape& shape, DType dtype) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes[0] = tensor.rank() > 0 ? tensor.shape()[0] : 1;
  const std::int64_t each = elements_of(shape);
  const bool same_count = each != kUnknownSize && static_cast<std::int64_t>(tensor.size()) == each * sizes[0];
  const Tensor shaped = same_count ? tensor.reshape(Shape(sizes)) : tensor;
  return shaped.dtype() == dtype ? shaped : shaped.cast(dtype);
}

std::vector<std::string> numbers_to(std::int64_t count) {
  std::vector<std::string> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(std::to_string(i));
  return result;
}

[[noreturn]] void refuse_form(const std::string& path, const char* forms) {
  throw InvalidArgument(
      fmt::format("{}: \"{}\" is no form of data that is read here; use {}", path, form_of(path), forms));
}

// The array of one of these names.
Tensor array_of(const NpzFile& file, const std::string& path, const std::vector<std::string>& names) {
  const std::vector<std::string> there = file.names();
  for (const std::string& name : names)
    if (std::find(there.begin(), there.end(), name) != there.end()) return file.read(name);
  std::string known;
  for (const std::string& name : there) known += known.empty() ? name : ", " + name;
  throw NotFound(fmt::format("{}: there is no array \"{}\"; there are: {}", path, names[0], known));
}

std::vector<std::string> usual_names(const char* letter, const std::string& own, std::size_t i, std::size_t count) {
  std::vector<std::string> names;
  if (count == 1) names = {letter, std::string(letter) + "_train"};
  names.push_back(fmt::format("{}{}", letter, i));
  names.push_back(own);
  return names;
}

// Columns that the target takes in a CSV: one label, or a number for each output.
std::size_t target_columns(const Model& model, const ModelEnds& ends) {
  if (model.loss_takes_labels()) return 1;
  const std::int64_t count = elements_of(ends.outputs[0]);
  return count == kUnknownSize ? 1 : static_cast<std::size_t>(count);
}

// Numbers of classes, as the loss takes them and a forecast counts them.
Tensor labels_of(const Tensor& targets, const Shape& output, const std::string& path) {
  Tensor labels = targets;
  if (is_floating(labels.dtype()) && !(labels == floor(labels)).all().item<bool>())
    throw InvalidArgument(
        fmt::format("{}: the model's loss takes numbers of classes as targets, and some are no whole numbers; give 0, "
                    "1, .., or text "
                    "with --categorical, or another --loss",
                    path));
  if (labels.dtype() != i32) labels = labels.cast(i32);
  if (labels.rank() == output.rank() && labels.shape().back() == 1)
    labels = labels.reshape(Shape(std::vector<std::int64_t>(labels.shape().begin(), labels.shape().end() - 1)));
  return labels;
}

Tensor target_of(const Tensor& targets, const Model& model, const Shape& output, const std::string& path) {
  return model.loss_takes_labels() ? labels_of(targets, output, path) : fitted(targets, output, f32);
}

// How the training data itself is read: the model's inputs are its first columns, the targets its last ones.
CsvOptions training_options(const Model& model, const ModelEnds& ends, const DataOptions& options) {
  CsvOptions csv{.targets = options.targets, .categorical = options.categorical, .header = options.has_header()};
  const std::size_t wanted = target_columns(model, ends);
  if (csv.targets.empty() && wanted > 1) {
    const std::int64_t features = elements_of(ends.inputs[0]);
    for (std::size_t i = 0; i < wanted; ++i)
      csv.targets.push_back(std::to_string(features + static_cast<std::int64_t>(i)));
  }
  return csv;
}

void check_columns(const std::string& path, const CsvTable& table, const ModelEnds& ends) {
  const std::int64_t features = elements_of(ends.inputs[0]);
  if (table.target_names.empty())
    throw InvalidArgument(
        fmt::format("{}: has one column; training takes one of inputs and one of targets at least", path));
  if (features != kUnknownSize && features != static_cast<std::int64_t>(table.feature_names.size()))
    throw InvalidArgument(
        fmt::format("{}: has {} beside {} of targets, the model takes {}; say which are targets with "
                    "--target",
                    path, counted(table.feature_names.size(), "column"), table.target_names.size(), features));
}

LoadedExamples load_csv_examples(const std::string& path, const Model& model, const DataOptions& options,
                                 const TableColumns& columns) {
  const ModelEnds ends(model);
  if (ends.inputs.size() != 1 || ends.outputs.size() != 1)
    throw InvalidArgument(fmt::format("{}: the model has {} and {}; a CSV has one table, use an npz", path,
                                      counted(ends.inputs.size(), "input"), counted(ends.outputs.size(), "output")));
  CsvOptions csv =
      columns.is_set() ? columns.options_for(path, options.has_header(), true) : training_options(model, ends, options);
  csv.missing = options.missing;
  const CsvTable table = load_csv(path, csv);
  check_columns(path, table, ends);
  return {.examples = {.inputs = {fitted(table.features, ends.inputs[0], ends.input_dtypes[0])},
                       .targets = {target_of(table.targets, model, ends.outputs[0], path)}},
          .dropped_rows = table.dropped_rows,
          .columns = TableColumns::of(table)};
}

// Rows that lack a value are asked about as if it were 0, and marked.
LoadedInputs load_csv_inputs(const std::string& path, const Model& model, const DataOptions& options,
                             const TableColumns& columns) {
  const ModelEnds ends(model);
  CsvOptions csv;
  if (columns.is_set()) {
    csv = columns.options_for(path, options.has_header(), false);
  } else {
    csv = {.header = options.has_header(), .all_features = true};
    const std::int64_t features = elements_of(ends.inputs[0]);
    if (features != kUnknownSize) csv.features = numbers_to(features);  // What follows them may be targets.
  }
  const bool drops = options.missing == "drop";
  csv.missing = drops ? "nan" : options.missing;
  const Tensor features = load_csv(path, csv).features;
  if (!drops) return {.inputs = {features}};
  const Tensor lacking = is_nan(features);
  const Tensor rows = lacking.any({1});
  return {.inputs = {where(lacking, zeros_like(features), features)},
          .lacking = rows,
          .lacking_rows = static_cast<std::size_t>(rows.cast(i64).sum().item<std::int64_t>())};
}

}  // namespace

ModelEnds::ModelEnds(const Model& model)
    : inputs(model.input_shapes()),
      outputs(model.output_shapes()),
      input_dtypes(model.input_dtypes()),
      input_names(model.input_names()),
      output_names(model.output_names()) {}

void add_header_option(CLI::App& command, DataOptions& options) {
  command.add_option("--header", options.header, "Whether the first line of a CSV has the names of its columns")
      ->check(CLI::IsMember({"yes", "no", "auto"}))
      ->capture_default_str();
}

void add_missing_option(CLI::App& command, DataOptions& options, const char* what) {
  command.add_option("--missing", options.missing, what)
      ->check(CLI::IsMember({"error", "zero", "nan", "drop"}))
      ->capture_default_str();
}

bool is_csv(const std::string& path) { return form_of(path) == ".csv"; }

LoadedExamples load_examples(const std::string& path, const Model& model, const DataOptions& options,
                             const TableColumns& columns) {
  if (is_csv(path)) return load_csv_examples(path, model, options, columns);
  if (form_of(path) != ".npz") refuse_form(path, ".csv or .npz");
  const ModelEnds ends(model);
  const NpzFile file(path);
  Example result;
  for (std::size_t i = 0; i < ends.inputs.size(); ++i)
    result.inputs.push_back(fitted(array_of(file, path, usual_names("x", ends.input_names[i], i, ends.inputs.size())),
                                   ends.inputs[i], ends.input_dtypes[i]));
  for (std::size_t i = 0; i < ends.outputs.size(); ++i)
    result.targets.push_back(
        target_of(array_of(file, path, usual_names("y", ends.output_names[i], i, ends.outputs.size())), model,
                  ends.outputs[i], path));
  return {.examples = std::move(result)};
}

LoadedInputs load_model_inputs(const std::string& path, const Model& model, const DataOptions& options,
                               const TableColumns& columns) {
  const ModelEnds ends(model);
  LoadedInputs loaded;
  std::vector<Tensor>& given = loaded.inputs;
  const std::string form = form_of(path);
  if (form == ".csv") {
    loaded = load_csv_inputs(path, model, options, columns);
  } else if (form == ".npy") {
    given = {load_npy(path)};
  } else if (form == ".json") {
    given = load_json_tensors(path);
  } else if (form == ".npz") {
    const NpzFile file(path);
    for (std::size_t i = 0; i < ends.inputs.size(); ++i)
      given.push_back(array_of(file, path, usual_names("x", ends.input_names[i], i, ends.inputs.size())));
  } else {
    refuse_form(path, ".csv, .npy, .npz or .json");
  }
  if (given.size() != ends.inputs.size())
    throw InvalidArgument(fmt::format("{}: has {}, the model takes {}; give one for each", path,
                                      counted(given.size(), "tensor"), counted(ends.inputs.size(), "input")));
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = fitted(given[i], ends.inputs[i], ends.input_dtypes[i]);
  return loaded;
}

void write_csv(const std::vector<Tensor>& tensors, FunctionRef<void(std::string_view row)> write) {
  const std::size_t rows =
      tensors.empty() || tensors[0].rank() == 0 ? 0 : static_cast<std::size_t>(tensors[0].shape()[0]);
  std::vector<TensorData<float>> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.cast(f32).data<float>());
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    text.clear();
    for (const TensorData<float>& column : values) {
      const std::size_t width = column.size() / rows;
      for (std::size_t i = 0; i < width; ++i) text += fmt::format("{},", column[row * width + i]);
    }
    if (!text.empty()) text.pop_back();  // The last comma.
    text += '\n';
    write(text);
  }
}

void save_tensors(const std::string& path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors) {
  const std::string form = form_of(path);
  if (form == ".npy") {
    if (tensors.size() != 1)
      throw InvalidArgument(fmt::format("{}: {} outputs do not go into one npy; use .npz", path, tensors.size()));
    return save_npy(path, tensors[0]);
  }
  if (form == ".npz") {
    TensorTree tree;
    for (std::size_t i = 0; i < tensors.size(); ++i) tree.insert(names[i], tensors[i]);
    return save_npz(path, tree);
  }
  AtomicFile file(path);
  if (form == ".csv") {
    write_csv(tensors, [&](std::string_view row) { file.write(row); });
  } else if (form == ".json") {
    nlohmann::ordered_json document = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      document.push_back({{"name", names[i]},
                          {"shape", std::vector<std::int64_t>(tensors[i].shape().begin(), tensors[i].shape().end())},
                          {"dtype", "float32"},
                          {"data", tensors[i].cast(f32).to_vector<float>()}});
    file.write(document.dump());
  } else {
    refuse_form(path, ".csv, .npy, .npz or .json");
  }
  file.commit();
}

}  // namespace plimsoll
