#include "plimsoll/cli/train/train_command_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/device/device.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kHeldWithoutBudget = std::size_t{1} << 30, kPoolWithoutBudget = std::size_t{256} << 20;

std::string form_of(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() == ".gz") name.replace_extension();
  return name.extension().string();
}

// The name of the array that has one of these names.
std::string array_name(const NpzFile& file, const std::string& path, const std::vector<std::string>& names) {
  const std::vector<std::string> there = file.names();
  for (const std::string& name : names)
    if (std::find(there.begin(), there.end(), name) != there.end()) return name;
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

// Class numbers, in the form that the loss takes and a forecast counts.
Tensor labels_of(const Tensor& targets, const Shape& output, const std::string& path) {
  Tensor labels = targets;
  if (labels.dtype() == f32) {
    for (const float value : labels.data<float>())
      if (value != std::floor(value))
        throw InvalidArgument(
            fmt::format("{}: the model's loss takes numbers of classes as targets, and {} is not a whole number; give "
                        "0, 1, .., or text with --categorical, or another --loss",
                        path, value));
  }
  if (labels.dtype() != i32) labels = labels.cast(i32);
  if (labels.rank() == output.rank() && labels.shape().back() == 1)
    labels = labels.reshape(Shape(std::vector<std::int64_t>(labels.shape().begin(), labels.shape().end() - 1)));
  else if (labels.rank() == output.rank() && output.rank() > 1 && labels.shape().back() == output.back())
    throw InvalidArgument(
        fmt::format("{}: has a target for each of {} classes, the model's loss takes the number of "
                    "one; give --loss categorical_crossentropy",
                    path, output.back()));
  return labels;
}

// Batches in the form that the model takes.
Dataset fit_batches(const Dataset& batches, const Model& model, const std::string& path) {
  return batches.map([ends = ModelEnds(model), labels = model.loss_takes_labels(), path](const Example& batch) {
    Example result;
    for (std::size_t i = 0; i < batch.inputs.size(); ++i)
      result.inputs.push_back(fitted(batch.inputs[i], ends.inputs[i], ends.input_dtypes[i]));
    for (std::size_t i = 0; i < batch.targets.size(); ++i)
      result.targets.push_back(labels ? labels_of(batch.targets[i], ends.outputs[i], path)
                                      : fitted(batch.targets[i], ends.outputs[i], f32));
    return result;
  });
}

std::size_t blocks(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

std::optional<MemoryForecast> forecast_or_none(const Model& model, const ForecastOptions& options) {
  try {
    return model.forecast(options);
  } catch (const FailedPrecondition&) {
    return std::nullopt;
  } catch (const InvalidArgument&) {
    return std::nullopt;
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

// The memory of a step, when it is known before there is a batch; its smallest budget is also enough for the last
// batch, which may be smaller and need more, because it can recompute less. Processes spread the parameters when the
// step fits the budget, with data of this size, only then.
std::optional<MemoryForecast> step_forecast(const Model& model, const BatchPlan& plan, TrainingData& data,
                                            std::size_t data_bytes) {
  ForecastOptions options = plan.together;
  options.batch_size = std::max<std::size_t>(std::min(plan.batch, data.examples), 1);
  std::optional<MemoryForecast> whole = forecast_or_none(model, options);
  if (const std::size_t rows = data.examples % options.batch_size; whole && plan.budget && rows > 0) {
    ForecastOptions last = options;
    last.batch_size = rows;
    if (const auto step = forecast_or_none(model, last))
      whole->smallest_budget = std::max(whole->smallest_budget, step->smallest_budget);
  }
  const auto fits = [&](const MemoryForecast& step) { return step.smallest_budget + data_bytes <= *plan.budget; };
  if (!whole || !plan.budget || options.ranks == 1 || options.shard_parameters || fits(*whole)) return whole;
  options.shard_parameters = true;
  std::optional<MemoryForecast> spread = forecast_or_none(model, options);
  if (!spread || !fits(*spread)) return whole;
  data.shards_parameters = true;
  return spread;
}

// Data may use what a step leaves. When the step must recompute, it gets half of what it could use.
std::size_t room_for_data(const std::optional<MemoryForecast>& step, std::size_t budget) {
  if (!step) return budget - budget / 2;
  if (budget >= step->peak_bytes) return budget - step->peak_bytes;
  return (budget - std::min(budget, step->smallest_budget)) / 2;
}

struct Npz {
  std::string path;
  std::vector<std::string> inputs, targets;  // Names of arrays.
  std::size_t rows = 0, bytes = 0;           // As the model takes them.

  Npz(const std::string& file_path, const ModelEnds& ends, bool labels) : path(file_path) {
    const NpzFile file(path);
    for (std::size_t i = 0; i < ends.inputs.size(); ++i)
      inputs.push_back(array_name(file, path, usual_names("x", ends.input_names[i], i, ends.inputs.size())));
    for (std::size_t i = 0; i < ends.outputs.size(); ++i)
      targets.push_back(array_name(file, path, usual_names("y", ends.output_names[i], i, ends.outputs.size())));
    const auto count = [&](const std::string& name, DType dtype) {
      const NpyEntry entry = file.entry(name);
      if (entry.shape.rank() == 0) throw InvalidArgument(fmt::format("{}: \"{}\" is one number", path, name));
      rows = static_cast<std::size_t>(entry.shape[0]);
      std::size_t elements = 1;
      for (const std::int64_t size : entry.shape) elements *= static_cast<std::size_t>(size);
      bytes += blocks(elements * size_of(dtype));
    };
    for (const std::string& name : targets) count(name, labels ? i32 : f32);
    for (std::size_t i = 0; i < inputs.size(); ++i) count(inputs[i], ends.input_dtypes[i]);
    if (rows == 0) throw InvalidArgument(fmt::format("train: {} has no examples", path));
  }
  Dataset dataset(const Model& model) const {
    return Dataset::from_loader(
        rows, bytes, [npz = *this, ends = ModelEnds(model), labels = model.loss_takes_labels()] {
          const NpzFile file(npz.path);
          Example all;
          for (std::size_t i = 0; i < npz.inputs.size(); ++i)
            all.inputs.push_back(fitted(file.read(npz.inputs[i]), ends.inputs[i], ends.input_dtypes[i]));
          for (std::size_t i = 0; i < npz.targets.size(); ++i) {
            const Tensor read = file.read(npz.targets[i]);
            all.targets.push_back(labels ? labels_of(read, ends.outputs[i], npz.path)
                                         : fitted(read, ends.outputs[i], f32));
          }
          return all;
        });
  }
};

}  // namespace

bool is_csv(const std::string& path) { return form_of(path) == ".csv"; }

void require_form(const std::string& path, const std::vector<std::string>& forms, const char* done) {
  if (std::find(forms.begin(), forms.end(), form_of(path)) != forms.end()) return;
  std::string list;
  for (std::size_t i = 0; i < forms.size(); ++i)
    list += (i == 0 ? "" : i + 1 == forms.size() ? " or " : ", ") + forms[i];
  throw InvalidArgument(
      fmt::format("{}: files that end in \"{}\" are not {} here; use {}", path, form_of(path), done, list));
}

Tensor fitted(const Tensor& tensor, const Shape& shape, DType dtype) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes[0] = tensor.rank() > 0 ? tensor.shape()[0] : 1;
  const std::int64_t each = elements_of(shape);
  const bool same_count = each != kUnknownSize && static_cast<std::int64_t>(tensor.size()) == each * sizes[0];
  const Tensor shaped = same_count ? tensor.reshape(Shape(sizes)) : tensor;
  return shaped.dtype() == dtype ? shaped : shaped.cast(dtype);
}

TrainingData make_training_data(const TrainingTable& table, const CsvFile* validation, const Model& model,
                                const BatchPlan& plan) {
  const CsvFile& file = table.file();
  TrainingData data;
  data.examples = file.num_examples(table.train());
  Dataset held = file.held(table.train()), held_validation;
  if (validation) held_validation = validation->held();
  if (!validation && table.validation()) held_validation = file.held(*table.validation());
  const auto bytes_of = [](const Dataset& rows) { return rows.is_set() ? rows.node()->held({}).resident : 0; };
  data.held_bytes = bytes_of(held) + bytes_of(held_validation);
  const std::size_t room = plan.budget ? room_for_data(step_forecast(model, plan, data, 0), *plan.budget)
                                       : std::min(kHeldWithoutBudget, current_device().arena().limit() / 4);
  data.streams = data.held_bytes > room;
  Dataset rows = held, validation_rows = held_validation;
  data.shuffled_rows = plan.shuffle ? data.examples : 0;
  if (data.streams) {
    data.held_bytes = 0;
    rows = file.streamed(table.train());
    if (validation) validation_rows = validation->streamed();
    if (!validation && table.validation()) validation_rows = file.streamed(*table.validation());
    const TableColumns& columns = table.columns();
    const std::size_t example =
        columns.look_back == 0
            ? file.row_bytes()
            : sizeof(float) * (static_cast<std::size_t>(columns.look_back) * columns.features.size() +
                               static_cast<std::size_t>(columns.horizon) * columns.targets.size());
    const std::size_t beside = 3 * plan.batch * example + 2 * bytes_of(rows) + 1024;  // Batches under construction.
    const std::size_t pool = (plan.budget ? room : kPoolWithoutBudget) - std::min(room, beside);
    data.shuffled_rows = plan.shuffle ? std::min(data.examples, pool / example) : 0;
  }
  if (data.shuffled_rows > 1)
    rows = rows.shuffle(data.shuffled_rows, {.seed = plan.seed});
  else
    data.shuffled_rows = 0;
  data.train = fit_batches(rows.batch(plan.batch), model, table.path());
  if (validation_rows.is_set()) data.validation = fit_batches(validation_rows.batch(plan.batch), model, table.path());
  return data;
}

TrainingData make_training_data(const std::string& path, const std::string& validation, double validation_split,
                                const Model& model, const BatchPlan& plan) {
  const ModelEnds ends(model);
  const bool labels = model.loss_takes_labels();
  const Npz npz(path, ends, labels);
  TrainingData data;
  data.examples = npz.rows;
  data.held_bytes = npz.bytes;
  std::optional<Npz> other;
  if (!validation.empty()) other.emplace(validation, ends, labels);
  if (other) data.held_bytes += other->bytes;
  const std::optional<MemoryForecast> forecast = step_forecast(model, plan, data, data.held_bytes);
  const std::size_t step = forecast ? forecast->smallest_budget : 0;
  if (plan.budget && forecast && step + data.held_bytes > *plan.budget) {
    OutOfMemoryDetails details;
    details.requested = details.smallest_sufficient_limit = step + data.held_bytes;
    details.limit = *plan.budget;
    details.what = fmt::format(
        "train: the model needs {} for a step with a batch of {}, and {} takes {}, the budget is {}; give a --budget "
        "of {} bytes, or a CSV, which can be streamed",
        format_bytes_exactly(step), plan.batch, path, format_bytes_exactly(data.held_bytes),
        format_bytes_exactly(*plan.budget), step + data.held_bytes);
    throw OutOfMemory(std::move(details));
  }
  Dataset rows = npz.dataset(model), validation_rows;
  if (other) {
    validation_rows = other->dataset(model);
  } else if (validation_split > 0) {
    const Dataset mixed = rows.shuffle(npz.rows, {.seed = plan.seed.value_or(0), .reshuffle_each_iteration = false});
    const auto kept = static_cast<std::size_t>(static_cast<double>(npz.rows) * (1 - validation_split));
    rows = mixed.take(kept);
    validation_rows = mixed.skip(kept);
    data.examples = kept;
    if (kept == 0 || kept == npz.rows)
      throw InvalidArgument(fmt::format("train: {} has {}; a split of {} leaves a part without any", path,
                                        plural(npz.rows, "example"), validation_split));
  }
  data.shuffled_rows = plan.shuffle && data.examples > 1 ? data.examples : 0;
  if (data.shuffled_rows > 0) rows = rows.shuffle(data.examples, {.seed = plan.seed});
  data.train = rows.batch(plan.batch);
  if (validation_rows.is_set()) data.validation = validation_rows.batch(plan.batch);
  return data;
}

bool npz_is_one_hot(const std::string& path, const ModelEnds& ends) {
  if (ends.outputs.size() != 1) return false;
  const NpzFile file(path);
  const NpyEntry y = file.entry(array_name(file, path, usual_names("y", ends.output_names[0], 0, 1)));
  const Shape& output = ends.outputs[0];
  return y.shape.rank() == output.rank() && output.rank() > 1 && output.back() > 1 && y.shape.back() == output.back();
}

std::vector<Tensor> load_model_inputs(const std::string& path, const Model& model) {
  const ModelEnds ends(model);
  std::vector<Tensor> given;
  const std::string form = form_of(path);
  if (form == ".npy") {
    given = {load_npy(path)};
  } else if (form == ".json") {
    given = load_json_tensors(path);
  } else {
    const NpzFile file(path);
    for (std::size_t i = 0; i < ends.inputs.size(); ++i)
      given.push_back(file.read(array_name(file, path, usual_names("x", ends.input_names[i], i, ends.inputs.size()))));
  }
  if (given.size() != ends.inputs.size())
    throw InvalidArgument(fmt::format("{}: has {}, the model takes {}; give one for each", path,
                                      plural(given.size(), "tensor"), plural(ends.inputs.size(), "input")));
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
  require_form(path, {".csv", ".npy", ".npz", ".json"});
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
  } else {
    nlohmann::ordered_json document = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      document.push_back({{"name", names[i]},
                          {"shape", std::vector<std::int64_t>(tensors[i].shape().begin(), tensors[i].shape().end())},
                          {"dtype", "float32"},
                          {"data", tensors[i].cast(f32).to_vector<float>()}});
    file.write(strict_json_text(document));
  }
  file.commit();
}

}  // namespace plimsoll::internal
