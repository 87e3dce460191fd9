#include "plimsoll/cli/train_command_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/layers_model.h"

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

Example load_csv_examples(const std::string& path, const Model& model, const DataOptions& options) {
  const ModelEnds ends(model);
  if (ends.inputs.size() != 1 || ends.outputs.size() != 1)
    throw InvalidArgument(fmt::format("{}: the model has {} inputs and {} outputs; a CSV has one table, use an npz",
                                      path, ends.inputs.size(), ends.outputs.size()));
  CsvOptions csv{.targets = options.targets, .categorical = options.categorical, .missing = options.missing};
  const std::size_t wanted = target_columns(model, ends);
  if (csv.targets.empty() && wanted > 1) {
    const std::int64_t features = elements_of(ends.inputs[0]);
    for (std::size_t i = 0; i < wanted; ++i)
      csv.targets.push_back(std::to_string(features + static_cast<std::int64_t>(i)));
  }
  const CsvTable table = load_csv(path, csv);
  const std::int64_t features = elements_of(ends.inputs[0]);
  if (features != kUnknownSize && features != static_cast<std::int64_t>(table.feature_names.size()))
    throw InvalidArgument(
        fmt::format("{}: has {} columns beside {} of targets, the model takes {}; say which are targets with --target",
                    path, table.feature_names.size(), table.target_names.size(), features));
  return {.inputs = {fitted(table.features, ends.inputs[0], ends.input_dtypes[0])},
          .targets = {model.loss_takes_labels() ? table.targets : fitted(table.targets, ends.outputs[0], f32)}};
}

}  // namespace

ModelEnds::ModelEnds(const Model& model)
    : inputs(model.input_shapes()),
      outputs(model.output_shapes()),
      input_dtypes(model.input_dtypes()),
      input_names(model.input_names()),
      output_names(model.output_names()) {}

Example load_examples(const std::string& path, const Model& model, const DataOptions& options) {
  if (form_of(path) == ".csv") return load_csv_examples(path, model, options);
  if (form_of(path) != ".npz") refuse_form(path, ".csv or .npz");
  const ModelEnds ends(model);
  const NpzFile file(path);
  Example result;
  for (std::size_t i = 0; i < ends.inputs.size(); ++i)
    result.inputs.push_back(fitted(array_of(file, path, usual_names("x", ends.input_names[i], i, ends.inputs.size())),
                                   ends.inputs[i], ends.input_dtypes[i]));
  for (std::size_t i = 0; i < ends.outputs.size(); ++i)
    result.targets.push_back(array_of(file, path, usual_names("y", ends.output_names[i], i, ends.outputs.size())));
  return result;
}

std::vector<Tensor> load_model_inputs(const std::string& path, const Model& model, const DataOptions& options) {
  const ModelEnds ends(model);
  std::vector<Tensor> given;
  const std::string form = form_of(path);
  if (form == ".csv") {
    const std::int64_t features = elements_of(ends.inputs[0]);
    CsvOptions csv{.categorical = options.categorical, .missing = options.missing, .all_features = true};
    if (features != kUnknownSize) csv.features = numbers_to(features);  // What follows them may be targets.
    given = {load_csv(path, csv).features};
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
    throw InvalidArgument(fmt::format("{}: has {} tensors, the model takes {} inputs; give one for each", path,
                                      given.size(), ends.inputs.size()));
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = fitted(given[i], ends.inputs[i], ends.input_dtypes[i]);
  return given;
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
