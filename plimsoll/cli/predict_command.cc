#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/table_columns.h"
#include "plimsoll/cli/train_command_data.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/counted.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::string model, input, budget, weights, out, columns_file;
  DataOptions columns;
  std::size_t batch = 32;
  bool json = false;
};

// What the model was trained with, beside its weights, unless another file is named.
TableColumns columns_for(const Arguments& arguments) {
  if (!arguments.columns_file.empty()) return TableColumns::load(arguments.columns_file);
  for (const std::string& place : {arguments.weights, arguments.model}) {
    const auto file = std::filesystem::path(place).parent_path() / TableColumns::kFile;
    if (!place.empty() && std::filesystem::exists(file)) return TableColumns::load(file.string());
  }
  return {};
}

// Rows that lack values have no answer; the others keep their places.
void leave_open(std::vector<Tensor>& outputs, const Tensor& rows) {
  const Tensor open = constant(std::numeric_limits<float>::quiet_NaN());
  for (Tensor& output : outputs) {
    std::vector<std::int64_t> sizes(output.rank(), 1);
    sizes[0] = rows.shape()[0];
    output = where(rows.reshape(Shape(sizes)), open, output);
  }
}

void print_json(const Model& model, const std::vector<Tensor>& outputs, const Arguments& arguments,
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
  std::printf("%s\n", document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void predict(const Arguments& arguments) {
  std::optional<Budget> budget;
  std::optional<BudgetScope> scope;
  if (!arguments.budget.empty()) {
    budget.emplace("predict", parse_bytes(arguments.budget));
    scope.emplace(*budget);
  }
  const TidyScope tensors;
  const Model model = load_layers_model(arguments.model);
  if (!arguments.weights.empty()) model.load_weights(arguments.weights);
  const bool is_table = is_csv(arguments.input);
  const TableColumns columns = is_table ? columns_for(arguments) : TableColumns();
  const LoadedInputs loaded = load_model_inputs(arguments.input, model, arguments.columns, columns);
  std::vector<Tensor> outputs = model.predict_all(loaded.inputs, {.batch_size = arguments.batch});
  if (loaded.lacking_rows > 0) leave_open(outputs, loaded.lacking);
  if (!arguments.out.empty()) save_tensors(arguments.out, model.output_names(), outputs);
  if (arguments.json)
    print_json(model, outputs, arguments, columns.classes(), loaded.lacking_rows);
  else if (arguments.out.empty())
    write_csv(outputs, [](std::string_view row) { std::fwrite(row.data(), 1, row.size(), stdout); });
  else
    std::printf("%s in %s.\n",
                outputs[0].shape()[0] == 1 ? "1 prediction is"
                                           : fmt::format("{} predictions are", outputs[0].shape()[0]).c_str(),
                arguments.out.c_str());
  std::fflush(stdout);
  if (loaded.lacking_rows > 0)
    std::fprintf(stderr, "plimsoll: %s of %s without all values; in %s there is nan\n",
                 counted(loaded.lacking_rows, "line").c_str(), arguments.input.c_str(),
                 loaded.lacking_rows == 1 ? "its place" : "their places");
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("predict", "Ask a Layers model; its answers go to standard output as CSV");
  command->add_option("MODEL", arguments->model, "model.json")->required()->type_name("FILE");
  command
      ->add_option("--input", arguments->input, "A CSV, npy, npz or JSON file; columns beyond the inputs are ignored")
      ->required()
      ->type_name("FILE");
  command->add_option("--weights", arguments->weights, "A checkpoint to load first")->type_name("PREFIX");
  command->add_option("--out", arguments->out, "Write to this file instead: .csv, .npy, .npz or .json")
      ->type_name("FILE");
  command
      ->add_option("--columns", arguments->columns_file,
                   "columns.json of the training; left out: the one beside the weights or the model")
      ->type_name("FILE");
  add_missing_option(*command, arguments->columns, "What an empty field is; drop: the answer to its line is nan");
  add_header_option(*command, arguments->columns);
  command->add_option("--batch", arguments->batch, "Examples at a time")->check(at_least(1))->capture_default_str();
  command->add_option("--budget", arguments->budget, "Bytes that it may take: 64MiB")
      ->check(size_check())
      ->type_name("SIZE");
  command->add_flag("--json", arguments->json, "Print one JSON document and nothing else");
  command->footer("Ends with 3 when it does not fit the budget.");
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace plimsoll
