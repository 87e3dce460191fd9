#include "plimsoll/cli/train/training_choice.h"

#include <fmt/format.h>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/model/onnx/onnx_inspect.h"

namespace plimsoll::internal {
namespace {

// The description of a model that was read before.
nlohmann::json document_of(const std::string& path) {
  return parse_json(is_keras_file(path) ? keras_file_config(path) : read_file(path, std::size_t{1} << 30));
}

// The last layer's activation tells what the outputs are. The document was read as a model before.
std::string usual_loss(const std::string& path) {
  if (path.ends_with(".onnx")) {
    const std::string last = describe_onnx(path).last_operator;
    return last == "Softmax"   ? "sparse_categorical_crossentropy"
           : last == "Sigmoid" ? "binary_crossentropy"
                               : "mean_squared_error";
  }
  const auto document = document_of(path);
  const auto& topology = document.contains("modelTopology") ? document["modelTopology"] : document;
  const auto& model = topology.contains("model_config") ? topology["model_config"] : topology;
  const auto& config = model["config"];
  const auto& last = config.is_array() ? config.back() : config["layers"].back();
  const std::string activation = last["config"].value("activation", nlohmann::json()).is_string()
                                     ? last["config"]["activation"].get<std::string>()
                                     : "";
  if (activation == "softmax" || last.value("class_name", "") == "Softmax") return "sparse_categorical_crossentropy";
  if (activation == "sigmoid") return "binary_crossentropy";
  return "mean_squared_error";
}

// The loss in the training configuration of a model that was read before.
std::string own_loss(const std::string& path) {
  if (path.ends_with(".onnx")) return "";
  const auto document = document_of(path);
  for (const char* key : {"trainingConfig", "plimsollTrainingConfig", "compile_config"}) {
    if (!document.contains(key) || !document[key].is_object()) continue;
    const auto loss = document[key].value("loss", nlohmann::json());
    if (loss.is_string()) return loss;
    if (loss.is_object() && loss.contains("class_name")) return loss["config"].value("name", "");
  }
  return "";
}

// A name that the library does not know is wrong usage.
template <class T>
OptionCheck name_of() {
  return [](const std::string& text) -> std::string {
    try {
      static_cast<void>(T(std::string_view(text)));
      return "";
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
}

}  // namespace

void add_training_choice(Command& command, TrainingChoice& choice) {
  command.option("--optimizer", choice.optimizer, "Left out: the model's, or adam")
      .one_of({"sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamw", "adamax"});
  command.option("--learning-rate", choice.learning_rate, "Left out: the optimizer's").check(positive_number());
  command.option("--loss", choice.loss, "Left out: the model's, or what goes with its last activation")
      .check(name_of<Loss>());
  command.option("--metrics", choice.metrics, "Left out: the model's, or accuracy for classes")
      .check(name_of<Metric>());
}

std::string compile(Model& model, const std::string& path, const TrainingChoice& choice, bool one_hot) {
  if (model.is_compiled() && choice.optimizer.empty() && choice.loss.empty() && choice.metrics.empty()) {
    if (choice.learning_rate != 0) model.optimizer().set_learning_rate(choice.learning_rate);
    return own_loss(path);
  }
  std::string loss = choice.loss.empty() ? usual_loss(path) : choice.loss;
  if (one_hot && choice.loss.empty() && loss == "sparse_categorical_crossentropy") loss = "categorical_crossentropy";
  std::vector<Metric> metrics;
  for (const std::string& name : choice.metrics) metrics.emplace_back(name);
  if (metrics.empty() && loss.find("crossentropy") != std::string::npos) metrics.emplace_back("accuracy");
  const Optimizer optimizer = optimizers::by_name(choice.optimizer.empty() ? "adam" : choice.optimizer);
  if (choice.learning_rate != 0) optimizer.set_learning_rate(choice.learning_rate);
  model.compile({.optimizer = optimizer, .loss = loss, .metrics = metrics});
  return loss;
}

void add_device_option(Command& command, std::string& device) {
  command.option("--device", device, "Where the model is and works: a name of `plimsoll devices`, as OPENCL:0")
      .value("NAME");
}

std::unique_ptr<DeviceScope> work_on(const std::string& device) {
  return device.empty() ? nullptr : std::make_unique<DeviceScope>(device);
}

void require_device(const std::string& device) { work_on(device).reset(); }

void add_spill_option(Command& command, std::string& directory) {
  command
      .option("--spill", directory,
              "A folder on a disk: values that the budget has no room for may be stored there; nothing is left in it")
      .value("DIR");
}

void require_budget_to_spill(const std::string& directory, const std::string& budget) {
  if (!directory.empty() && budget.empty()) refuse_usage("--spill", "needs --budget, without which nothing is stored");
}

}  // namespace plimsoll::internal
