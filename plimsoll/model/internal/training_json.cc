#include "plimsoll/model/internal/training_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/config.h"
#include "plimsoll/model/internal/layer_names.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/slot_names.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// TF.js writes camelCase here, Keras snake_case.
double number_of(const ConfigReader& in, const char* camel, const char* snake, double otherwise) {
  return in.number(in.has(camel) ? camel : snake, otherwise);
}

Optimizer read_optimizer(const std::string& name, const ConfigReader& in) {
  const double rate = number_of(in, "learningRate", "learning_rate", 0.001);
  const double epsilon = in.number("epsilon", 1e-7);
  const double beta_1 = number_of(in, "beta1", "beta_1", 0.9), beta_2 = number_of(in, "beta2", "beta_2", 0.999);
  if (name == "Adam") return Optimizer(AdamOptions{rate, beta_1, beta_2, epsilon, 0, true});
  if (name == "Adamax") return Optimizer(AdamaxOptions{rate, beta_1, beta_2, epsilon});
  if (name == "SGD" || name == "Momentum")
    return Optimizer(SGDOptions{.learning_rate = rate,
                                .momentum = in.number("momentum", 0),
                                .nesterov = in.flag("useNesterov", in.flag("nesterov", false)),
                                .tfjs = true});
  if (name == "RMSProp" || name == "RMSprop")
    return Optimizer(RMSpropOptions{.learning_rate = rate,
                                    .rho = number_of(in, "decay", "rho", 0.9),
                                    .momentum = in.number("momentum", 0),
                                    .epsilon = epsilon,
                                    .centered = in.flag("centered", false),
                                    .tfjs = true});
  if (name == "Adagrad")
    return Optimizer(AdagradOptions{
        .learning_rate = rate,
        .initial_accumulator_value = number_of(in, "initialAccumulatorValue", "initial_accumulator_value", 0.1)});
  if (name == "Adadelta")
    return Optimizer(
        AdadeltaOptions{.learning_rate = rate, .rho = in.number("rho", 0.95), .epsilon = epsilon, .tfjs = true});
  throw Unsupported(fmt::format("{}: optimizer \"{}\" is not offered", in.path(), name));
}

std::vector<Loss> read_losses(const Json& in, const std::vector<std::string>& outputs, const std::string& path) {
  std::vector<Loss> result;
  const auto add = [&](const Json& each) {
    if (!each.is_string()) throw Unsupported(fmt::format("{}: a loss that is no name is not offered", path));
    try {
      result.emplace_back(snake_case(each.get<std::string>()));
    } catch (const InvalidArgument& error) {
      throw Unsupported(fmt::format("{}: {}", path, error.what()));
    }
  };
  if (in.is_array()) {
    for (const Json& each : in) add(each);
  } else if (in.is_object()) {
    for (const std::string& output : outputs) {
      if (!in.contains(output)) throw Corruption(fmt::format("{}: no loss for output \"{}\"", path, output));
      add(in[output]);
    }
  } else {
    add(in);
  }
  return result;
}

std::vector<Metric> read_metrics(const Json& in, const std::string& path) {
  std::vector<Metric> result;
  if (!in.is_array()) return result;
  for (const Json& each : in) {
    if (!each.is_string()) throw Unsupported(fmt::format("{}: a metric that is no name is not offered", path));
    try {
      result.emplace_back(snake_case(each.get<std::string>()));
    } catch (const InvalidArgument& error) {
      throw Unsupported(fmt::format("{}: {}", path, error.what()));
    }
  }
  return result;
}

void restore(const Model& model, const Optimizer& optimizer, const std::map<std::string, Tensor>& state,
             const std::string& path) {
  const auto step = state.find("iter");
  if (step != state.end()) optimizer.restore_step(step->second.item<std::int64_t>());
  for (const Variable& parameter : model.trainable_weights()) {
    std::vector<Optimizer::Slot> slots;
    const std::string prefix = parameter.name() + "/";
    for (const auto& [name, value] : state)
      if (name.compare(0, prefix.size(), prefix) == 0)
        slots.push_back({slot_name_here(optimizer.options(), name.substr(prefix.size())), value});
    if (slots.empty()) continue;
    try {
      optimizer.restore(parameter, slots);
    } catch (const InvalidArgument& error) {
      throw Corruption(fmt::format("{}: {}", path, error.what()));
    }
  }
}

OrderedJson config_of(const OptimizerOptions& options, std::string& class_name) {
  return std::visit(
      [&]<class O>(const O& o) -> OrderedJson {
        OrderedJson config = {{"learningRate", o.learning_rate}};
        if constexpr (requires { o.beta_1; }) config["beta1"] = o.beta_1, config["beta2"] = o.beta_2;
        if constexpr (std::is_same_v<O, AdamOptions>) class_name = "Adam";
        if constexpr (std::is_same_v<O, AdamaxOptions>) class_name = "Adamax";
        if constexpr (std::is_same_v<O, SGDOptions>) {
          class_name = o.momentum > 0 ? "Momentum" : "SGD";
          if (o.momentum > 0) config["momentum"] = o.momentum, config["useNesterov"] = o.nesterov;
        }
        if constexpr (std::is_same_v<O, RMSpropOptions>) {
          class_name = "RMSProp";
          config["decay"] = o.rho, config["momentum"] = o.momentum, config["centered"] = o.centered;
        }
        if constexpr (std::is_same_v<O, AdagradOptions>) {
          class_name = "Adagrad";
          config["initialAccumulatorValue"] = o.initial_accumulator_value;
        }
        if constexpr (std::is_same_v<O, AdadeltaOptions>) class_name = "Adadelta", config["rho"] = o.rho;
        if constexpr (requires { o.epsilon; } && !std::is_same_v<O, AdagradOptions>) config["epsilon"] = o.epsilon;
        return config;
      },
      options);
}

}  // namespace

void read_training(const Model& model, const Json& in, const std::map<std::string, Tensor>& state,
                   const std::string& path) {
  if (!in.contains("optimizer_config") || !in.contains("loss"))
    throw Corruption(fmt::format("{}: expected optimizer_config and loss", path));
  const ConfigReader given(in["optimizer_config"], path + "/optimizer_config");
  const Json& config = in["optimizer_config"].contains("config") ? in["optimizer_config"]["config"] : Json::object();
  try {
    const Optimizer optimizer =
        read_optimizer(given.text("class_name", ""), ConfigReader(config, path + "/optimizer_config/config"));
    model.compile({.optimizer = optimizer,
                   .loss = read_losses(in["loss"], model.network().output_names(), path + "/loss"),
                   .metrics = read_metrics(in.contains("metrics") ? in["metrics"] : Json(), path + "/metrics")});
    restore(model, optimizer, state, path);
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

OrderedJson write_training(const Model& model, const std::function<void(const std::string&, const Tensor&)>& put) {
  const Optimizer& optimizer = model.optimizer();
  const Training& training = model.network().training;
  put("iter", constant(static_cast<std::int32_t>(optimizer.step())));
  const std::vector<Variable> parameters = model.trainable_weights();
  std::vector<std::vector<Optimizer::Slot>> slots;
  for (const Variable& parameter : parameters) slots.push_back(optimizer.slots(parameter));
  // All of one kind, then all of the next.
  for (std::size_t kind = 0; !slots.empty() && kind < slots[0].size(); ++kind)
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (kind < slots[i].size())
        put(parameters[i].name() + "/" + slot_name_elsewhere(optimizer.options(), slots[i][kind].name),
            slots[i][kind].value);
  std::string class_name;
  OrderedJson config = config_of(optimizer.options(), class_name);
  config["learningRate"] = optimizer.learning_rate();
  OrderedJson losses = OrderedJson::array(), metrics = OrderedJson::array();
  for (const Loss& loss : training.losses) losses.push_back(loss.name());
  for (const Metric& metric : training.given_metrics) metrics.push_back(metric.name());
  return {{"loss", losses.size() == 1 ? losses[0] : losses},
          {"metrics", std::move(metrics)},
          {"optimizer_config", {{"class_name", class_name}, {"config", std::move(config)}}}};
}

}  // namespace plimsoll
