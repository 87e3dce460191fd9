#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/train/onnx_files.h"
#include "plimsoll/cli/train/table_columns.h"
#include "plimsoll/cli/train/train_command_data.h"
#include "plimsoll/cli/train/training_choice.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/outside_budgets.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll::internal {
namespace {

struct PredictArguments {
  std::string model, input, budget, device, spill, weights, out, columns_file;
  DataOptions columns;
  std::size_t batch = 32;
  bool json = false, initialize = false;

  BatchSizeOptions batches() const {
    BatchSizeOptions options{.batch_size = batch, .spill = spill};
    if (!budget.empty()) options.budget = parse_bytes(budget);
    return options;
  }
};

// The columns of the training data, stored with the model's weights, unless another file is given.
TableColumns columns_for(const PredictArguments& arguments) {
  if (!arguments.columns_file.empty()) return TableColumns::load(arguments.columns_file);
  for (const std::string& place : {arguments.weights, arguments.model}) {
    const auto file = std::filesystem::path(place).parent_path() / TableColumns::kFile;
    if (!place.empty() && std::filesystem::exists(file)) return TableColumns::load(file.string());
  }
  return {};
}

// Random weights would give random answers.
void require_weights(const PredictArguments& arguments) {
  if (!arguments.weights.empty() || arguments.initialize || is_keras_file(arguments.model)) return;
  const auto document = parse_json(read_file(arguments.model, std::size_t{1} << 30));
  if (document.contains("weightsManifest")) return;
  throw InvalidArgument(
      fmt::format("predict: {} has no weights, its answers would be random; give those of a checkpoint with --weights, "
                  "train it first, or give --initialize",
                  arguments.model));
}

struct Answers {
  std::vector<Tensor> outputs;
  std::size_t lacking = 0;  // Examples with missing values, which get no answer.
};

// Leaves rows with missing values without an answer; the others keep their places.
void leave_open(std::vector<Tensor>& outputs, const Tensor& rows) {
  const Tensor open = constant(std::numeric_limits<float>::quiet_NaN());
  for (Tensor& output : outputs) {
    std::vector<std::int64_t> sizes(output.rank(), 1);
    sizes[0] = rows.shape()[0];
    output = where(rows.reshape(Shape(sizes)).to(output.device()), open.to(output.device()), output);
  }
}

CsvOptions csv_options(const PredictArguments& arguments, const ModelEnds& ends, const TableColumns& columns) {
  CsvOptions csv{.header = arguments.columns.has_header(), .all_features = true};
  if (columns.is_set()) {
    csv = columns.options_for(arguments.input, arguments.columns.has_header(), false);
  } else if (const std::int64_t features = elements_of(ends.inputs[0]); features != kUnknownSize) {
    for (std::int64_t i = 0; i < features; ++i) csv.features.push_back(std::to_string(i));  // Others may be targets.
  }
  csv.missing = arguments.columns.missing == "drop" ? "nan" : arguments.columns.missing;
  return csv;
}

// In the units of the file.
Tensor unscaled(const Tensor& output, const std::vector<CsvScale>& scales) {
  const std::size_t width = scales.empty() ? 0 : output.size() / static_cast<std::size_t>(output.shape()[0]);
  if (width == 0 || width % scales.size() != 0) return output;
  std::vector<float> means, deviations;
  for (std::size_t i = 0; i < width; ++i) {
    means.push_back(static_cast<float>(scales[i % scales.size()].mean));
    deviations.push_back(static_cast<float>(scales[i % scales.size()].deviation));
  }
  std::vector<std::int64_t> sizes(output.shape().begin(), output.shape().end());
  sizes[0] = 1;
  const auto there = [&](const std::vector<float>& values) {
    return from_vector(values, Shape(sizes)).to(output.device());
  };
  return output * there(deviations) + there(means);
}

// Batch by batch, without holding the table.
Answers predict_table(const PredictArguments& arguments, const Model& model, const TableColumns& columns) {
  const ModelEnds ends(model);
  if (ends.inputs.size() != 1)
    throw InvalidArgument(fmt::format("{}: the model has {}; a CSV has one table, use an npz", arguments.input,
                                      plural(ends.inputs.size(), "input")));
  const CsvFile file(arguments.input, csv_options(arguments, ends, columns),
                     reading_progress(arguments.input, arguments.json));
  if (file.num_examples() == 0)
    throw InvalidArgument(columns.look_back > 0
                              ? fmt::format("predict: {} has {}, the model looks back at {}; give it more",
                                            arguments.input, plural(file.num_rows(), "row"), columns.look_back)
                              : fmt::format("predict: {} has no rows", arguments.input));
  Answers answers;
  std::vector<std::vector<Tensor>> parts(ends.outputs.size());
  for (const Example& batch : file.streamed().batch(arguments.batch)) {
    std::vector<Tensor> outputs = tidy([&] {
      const bool drops = arguments.columns.missing == "drop";
      const Tensor lacking = drops ? is_nan(batch.x()) : Tensor();
      const Tensor x = drops ? where(lacking, zeros_like(batch.x()), batch.x()) : batch.x();
      std::vector<Tensor> results =
          model.predict_all({fitted(x, ends.inputs[0], ends.input_dtypes[0])}, arguments.batches());
      if (results.size() == 1) results[0] = unscaled(results[0], columns.target_scales());
      if (!drops) return results;
      const Tensor rows = lacking.reshape({lacking.shape()[0], -1}).any({1});
      answers.lacking += static_cast<std::size_t>(rows.cast(i64).sum().item<std::int64_t>());
      leave_open(results, rows);
      return results;
    });
    for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(std::move(outputs[i]));
  }
  for (const auto& part : parts) answers.outputs.push_back(part.size() == 1 ? part[0] : concat(part, 0));
  return answers;
}

void print_json(const Model& model, const std::vector<Tensor>& outputs, const PredictArguments& arguments,
                const std::vector<std::string>& classes, std::size_t lacking_rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<std::string> names = model.output_names();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    list.push_back({{"name", names[i]},
                    {"shape", std::vector<std::int64_t>(outputs[i].shape().begin(), outputs[i].shape().end())},
                    {"dtype", "float32"},
                    {"data", outputs[i].cast(f32).to_vector<float>()}});
  const nlohmann::ordered_json document = {
      {"outputs", std::move(list)},
      {"classes", classes.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(classes)},
      {"dropped_rows", lacking_rows},
      {"peak_bytes", memory_stats().peak_bytes_in_use},
      {"out", arguments.out.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(arguments.out)}};
  std::printf("%s\n", json_text(document).c_str());
}

// A model and what it answers.
struct Predicted {
  Model model;
  TableColumns columns;
  Answers answers;
};

Predicted answer(const PredictArguments& arguments) {
  Model model = load_model(arguments.model, {.compile = false});
  require_weights(arguments);
  if (!arguments.weights.empty()) model.load_weights(arguments.weights);
  if (is_csv(arguments.input)) {
    TableColumns columns = columns_for(arguments);
    Answers answers = predict_table(arguments, model, columns);
    return {std::move(model), std::move(columns), std::move(answers)};
  }
  Answers answers{.outputs = model.predict_all(load_model_inputs(arguments.input, model), arguments.batches())};
  return {std::move(model), {}, std::move(answers)};
}

// The smallest budget in which everything works: a refusal names what suffices for what it refused, and something later
// may need more. 0 when that is not found.
std::size_t sufficient_budget(const PredictArguments& given, std::size_t bytes) {
  constexpr int kMostAttempts = 100;
  PredictArguments arguments = given;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    try {
      arguments.budget = std::to_string(bytes);
      const Budget budget("predict", bytes);
      const BudgetScope scope(budget);
      const TidyScope tensors;
      answer(arguments);
      return bytes;
    } catch (const OutOfMemory& error) {
      if (error.smallest_sufficient_limit() <= bytes) return 0;
      bytes = error.smallest_sufficient_limit();
    }
  }
  return 0;
}

Predicted answer_within(const PredictArguments& arguments, const std::optional<Budget>& budget) {
  try {
    return answer(arguments);
  } catch (const OutOfMemory& error) {
    if (!budget || error.smallest_sufficient_limit() <= budget->limit()) throw;
    std::size_t enough = 0;
    {
      const OutsideBudgets outside;
      enough = sufficient_budget(arguments, error.smallest_sufficient_limit());
    }
    if (enough <= error.smallest_sufficient_limit()) throw;
    OutOfMemoryDetails details{.requested = enough,
                               .limit = budget->limit(),
                               .smallest_sufficient_limit = enough,
                               .holders = error.holders(),
                               .tried = error.tried()};
    details.what = fmt::format(
        "predict: {} needs {} to answer {}, its budget is {}; give it {} bytes, or predict smaller batches",
        arguments.model, format_bytes_exactly(enough), arguments.input, format_bytes_exactly(budget->limit()), enough);
    throw OutOfMemory(std::move(details));
  }
}

void predict(const PredictArguments& arguments) {
  const auto there = work_on(arguments.device);
  if (is_onnx(arguments.model)) {
    if (!arguments.weights.empty() || !arguments.spill.empty() || !arguments.columns_file.empty())
      throw InvalidArgument("predict: an ONNX file takes neither --weights, --columns nor --spill; leave them out");
    return predict_onnx({arguments.model, arguments.input, arguments.out, arguments.budget, arguments.json});
  }
  require_budget_to_spill(arguments.spill, arguments.budget);
  if (!arguments.input.empty()) require_form(arguments.input, {".csv", ".npy", ".npz", ".json"});
  if (!arguments.out.empty()) require_form(arguments.out, {".csv", ".npy", ".npz", ".json"}, "written");
  std::optional<Budget> budget;
  std::optional<BudgetScope> scope;
  if (!arguments.budget.empty()) {
    budget.emplace("predict", parse_bytes(arguments.budget));
    scope.emplace(*budget);
  }
  const TidyScope tensors;
  const auto [model, columns, answers] = answer_within(arguments, budget);
  const std::vector<Tensor>& outputs = answers.outputs;
  if (!arguments.out.empty()) save_tensors(arguments.out, model.output_names(), outputs);
  if (arguments.json)
    print_json(model, outputs, arguments, columns.classes(), answers.lacking);
  else if (arguments.out.empty())
    write_csv(outputs, [](std::string_view row) { std::fwrite(row.data(), 1, row.size(), stdout); });
  else
    std::printf("%s in %s.\n",
                outputs[0].shape()[0] == 1 ? "1 prediction is"
                                           : fmt::format("{} predictions are", outputs[0].shape()[0]).c_str(),
                arguments.out.c_str());
  std::fflush(stdout);
  if (answers.lacking > 0)
    std::fprintf(stderr, "plimsoll: %s of %s without all values; in %s there is nan\n",
                 plural(answers.lacking, columns.look_back > 0 ? "window" : "line").c_str(), arguments.input.c_str(),
                 answers.lacking == 1 ? "its place" : "their places");
}

}  // namespace

void add_predict_command(CommandLine& app) {
  auto arguments = std::make_shared<PredictArguments>();
  Command command(app, "predict", "Ask a Layers model, whose answers go to standard output as CSV, or an ONNX model");
  command.option("MODEL", arguments->model, "model.json, .keras, .h5 or .onnx").required().value("FILE");
  command.option("--input", arguments->input, "A CSV, npy, npz or JSON file; columns beyond the inputs are ignored")
      .required()
      .value("FILE");
  command.option("--weights", arguments->weights, "A checkpoint to load first").value("PREFIX");
  command.option("--out", arguments->out, "Write to this file instead: .csv, .npy, .npz or .json").value("FILE");
  command
      .option("--columns", arguments->columns_file,
              "columns.json of the training; default: the one next to the weights or the model")
      .value("FILE");
  add_missing_option(command, arguments->columns, "What an empty field is; drop: the answer to its line is nan");
  add_header_option(command, arguments->columns);
  command.option("--batch", arguments->batch, "Examples at a time").check(at_least(1)).show_default();
  command.option("--budget", arguments->budget, "Bytes that it may take: 64MiB").check(size_check()).value("SIZE");
  add_device_option(command, arguments->device);
  add_spill_option(command, arguments->spill);
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.flag("--initialize", arguments->initialize, "Take random weights for a model that has none");
  command.notes(
      "Ends with 3 when it does not fit the budget. A model that was trained with --look-back N answers each N rows "
      "after one another; the last answer is about what follows the file. An ONNX model is run once on whole inputs: "
      "--input is an npz with its inputs by name, --out another with its outputs.\n"
      "Example:\n"
      "  plimsoll predict prices-trained/model.json --input prices.csv --out answers.csv");
  command.run([arguments] { predict(*arguments); });
}

}  // namespace plimsoll::internal
