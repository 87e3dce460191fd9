#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/train_command_data.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/layers_model.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::string model, input, budget, weights, out;
  DataOptions columns;
  std::size_t batch = 32;
  bool json = false;
};

void print_json(const Model& model, const std::vector<Tensor>& outputs, const Arguments& arguments) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<std::string> names = model.output_names();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    list.push_back({{"name", names[i]},
                    {"shape", std::vector<std::int64_t>(outputs[i].shape().begin(), outputs[i].shape().end())},
                    {"dtype", "float32"},
                    {"data", outputs[i].cast(f32).to_vector<float>()}});
  const nlohmann::ordered_json document = {
      {"outputs", std::move(list)},
      {"peak_bytes", memory_stats().peak_bytes_in_use},
      {"out", arguments.out.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(arguments.out)}};
  std::printf("%s\n", document.dump().c_str());
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
  const std::vector<Tensor> outputs =
      model.predict_all(load_model_inputs(arguments.input, model, arguments.columns), {.batch_size = arguments.batch});
  if (!arguments.out.empty()) save_tensors(arguments.out, model.output_names(), outputs);
  if (arguments.json)
    print_json(model, outputs, arguments);
  else if (arguments.out.empty())
    write_csv(outputs, [](std::string_view row) { std::fwrite(row.data(), 1, row.size(), stdout); });
  else
    std::printf("%lld predictions are in %s.\n", static_cast<long long>(outputs[0].shape()[0]), arguments.out.c_str());
  std::fflush(stdout);
}

std::string not_a_size(const std::string& text) {
  try {
    return parse_bytes(text) > 0 ? "" : "a budget of no bytes";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

}  // namespace

void add_predict_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("predict", "Ask a Layers model; its answers go to standard output as CSV");
  command->add_option("MODEL", arguments->model, "model.json")->required()->check(CLI::ExistingFile);
  command
      ->add_option("--input", arguments->input, "A CSV, npy, npz or JSON file; columns beyond the inputs are ignored")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--weights", arguments->weights, "A checkpoint to load first")->type_name("PREFIX");
  command->add_option("--out", arguments->out, "Write to this file instead: .csv, .npy, .npz or .json")
      ->type_name("FILE");
  command->add_option("--categorical", arguments->columns.categorical, "Columns of text, which become numbers");
  command->add_option("--missing", arguments->columns.missing, "What an empty field is")
      ->check(CLI::IsMember({"error", "zero", "nan", "drop"}))
      ->capture_default_str();
  command->add_option("--batch", arguments->batch, "Examples at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--budget", arguments->budget, "Bytes that it may take: 64MiB")
      ->check(CLI::Validator(not_a_size, "SIZE"))
      ->type_name("SIZE");
  command->add_flag("--json", arguments->json, "Print one JSON document and nothing else");
  command->footer("Ends with 3 when it does not fit the budget.");
  command->callback([arguments] {
    try {
      predict(*arguments);
    } catch (const OutOfMemory& error) {
      std::fflush(stdout);
      std::fprintf(stderr, "plimsoll: %s\n", error.what());
      throw Exit{3};
    }
  });
}

}  // namespace plimsoll
