#include "plimsoll/model/keras/training_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/keras/slot_names.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll::internal {
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
  const bool tfjs = in.text("formula", "tfjs") == "tfjs";
  if (name == "Adam") return Optimizer(AdamOptions{rate, beta_1, beta_2, epsilon, in.number("weightDecay", 0), tfjs});
  if (name == "Adamax") return Optimizer(AdamaxOptions{rate, beta_1, beta_2, epsilon});
  if (name == "SGD" || name == "Momentum")
    return Optimizer(SGDOptions{.learning_rate = rate,
                                .momentum = in.number("momentum", 0),
                                .nesterov = in.flag("useNesterov", in.flag("nesterov", false)),
                                .tfjs = tfjs});
  if (name == "RMSProp" || name == "RMSprop")
    return Optimizer(RMSpropOptions{.learning_rate = rate,
                                    .rho = number_of(in, "decay", "rho", 0.9),
                                    .momentum = in.number("momentum", 0),
                                    .epsilon = epsilon,
                                    .centered = in.flag("centered", false),
                                    .tfjs = tfjs});
  if (name == "Adagrad")
    return Optimizer(AdagradOptions{
        .learning_rate = rate,
        .initial_accumulator_value = number_of(in, "initialAccumulatorValue", "initial_accumulator_value", 0.1)});
  if (name == "Adadelta")
    return Optimizer(
        AdadeltaOptions{.learning_rate = rate, .rho = in.number("rho", 0.95), .epsilon = epsilon, .tfjs = tfjs});
  throw Unsupported(fmt::format("{}: optimizer \"{}\" is not offered", in.path(), name));
}

std::vector<Loss> read_losses(const Json& in, const std::vector<std::string>& outputs, const std::string& path) {
  std::vector<Loss> result;
  const auto add = [&](const Json& each) {
    if (!each.is_string()) throw Unsupported(fmt::format("{}: a loss that is not a name is not offered", path));
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

// What TF.js does not support: options of losses, their weights, clipping.
OrderedJson details_of(const Training& training) {
  OrderedJson losses = OrderedJson::array();
  for (const Loss& loss : training.losses)
    losses.push_back({{"from_logits", loss.options().from_logits},
                      {"label_smoothing", loss.options().label_smoothing},
                      {"delta", loss.options().delta}});
  return {{"loss_options", std::move(losses)},
          {"loss_weights", training.loss_weights},
          {"clip_norm", training.clipping.norm},
          {"clip_value", training.clipping.value},
          {"global_clip_norm", training.clipping.global_norm}};
}

void read_details(CompileOptions& options, std::vector<Loss>& losses, const Json& in, const std::string& path) {
  const ConfigReader reader = config_reader(in, path);
  options.clip_norm = reader.number("clip_norm", 0);
  options.clip_value = reader.number("clip_value", 0);
  options.global_clip_norm = reader.number("global_clip_norm", 0);
  if (in.contains("loss_weights") && in["loss_weights"].is_array() && in["loss_weights"].size() == losses.size())
    for (const Json& weight : in["loss_weights"])
      options.loss_weights.push_back(weight.is_number() ? weight.get<double>() : 1);
  if (!in.contains("loss_options") || !in["loss_options"].is_array()) return;
  for (std::size_t i = 0; i < losses.size() && i < in["loss_options"].size(); ++i) {
    const ConfigReader each = config_reader(in["loss_options"][i], path + "/loss_options");
    LossOptions given = losses[i].options();
    given.from_logits = each.flag("from_logits", given.from_logits);
    given.label_smoothing = each.number("label_smoothing", given.label_smoothing);
    given.delta = each.number("delta", given.delta);
    losses[i] = losses[i].with(given);
  }
}

std::string loss_name_elsewhere(const std::string& ours) {
  static const std::map<std::string, std::string> kNames = {{"mse", "mean_squared_error"},
                                                            {"mae", "mean_absolute_error"},
                                                            {"mape", "mean_absolute_percentage_error"},
                                                            {"msle", "mean_squared_logarithmic_error"},
                                                            {"log_cosh", "logcosh"},
                                                            {"kl_divergence", "kullback_leibler_divergence"}};
  const auto found = kNames.find(ours);
  return found == kNames.end() ? ours : found->second;
}

std::vector<Metric> read_metrics(const Json& in, const std::string& path) {
  std::vector<Metric> result;
  if (!in.is_array()) return result;
  for (const Json& each : in) {
    if (!each.is_string()) throw Unsupported(fmt::format("{}: a metric that is not a name is not offered", path));
    try {
      result.emplace_back(snake_case(each.get<std::string>()));
    } catch (const InvalidArgument& error) {
      throw Unsupported(fmt::format("{}: {}", path, error.what()));
    }
  }
  return result;
}

// TF.js stores a momentum for every RMSprop.
bool is_unused_momentum(const OptimizerOptions& options) {
  const auto* rmsprop = std::get_if<RMSpropOptions>(&options);
  return rmsprop != nullptr && rmsprop->momentum == 0;
}

void restore(const Model& model, const Optimizer& optimizer, const std::map<std::string, Tensor>& state,
             const std::string& path) {
  const auto step = state.find("iter");
  if (step != state.end()) optimizer.restore_step(step->second.item<std::int64_t>());
  for (const Variable& parameter : model.trainable_weights()) {
    std::vector<Optimizer::Slot> slots;
    const std::string prefix = parameter.name() + "/";
    for (auto each = state.lower_bound(prefix); each != state.end() && each->first.starts_with(prefix); ++each) {
      const auto& [name, value] = *each;
      const std::string slot = slot_name_here(optimizer.options(), name.substr(prefix.size()));
      if (slot != "momentum" || !is_unused_momentum(optimizer.options())) slots.push_back({slot, value});
    }
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
        if constexpr (requires { o.tfjs; }) {
          if (!o.tfjs) config["formula"] = "keras";
        }
        if constexpr (requires { o.weight_decay; }) {
          if (o.weight_decay != 0) config["weightDecay"] = o.weight_decay;
        }
        if constexpr (requires { o.epsilon; } && !std::is_same_v<O, AdagradOptions>) config["epsilon"] = o.epsilon;
        return config;
      },
      options);
}

// All of one kind, then all of the next.
void write_slots(const Model& model, const std::vector<Variable>& parameters,
                 const std::function<void(const std::string&, const Tensor&)>& put) {
  const Optimizer& optimizer = model.optimizer();
  const auto& spread = model.network().training.spread;
  std::vector<std::vector<Optimizer::Slot>> slots;
  for (const Variable& parameter : parameters)
    slots.push_back(spread ? spread->whole_slots(optimizer, parameter) : optimizer.slots(parameter));
  if (slots.empty() || slots[0].empty()) return;
  const bool add_momentum = is_unused_momentum(optimizer.options());
  for (std::size_t kind = 0; kind < slots[0].size(); ++kind) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (kind < slots[i].size())
        put(parameters[i].name() + "/" + slot_name_elsewhere(optimizer.options(), slots[i][kind].name),
            slots[i][kind].value);
    if (kind == 0 && add_momentum)
      for (const Variable& parameter : parameters) put(parameter.name() + "/momentum", zeros(parameter.shape()));
  }
}

}  // namespace

void read_training(Model& model, const Json& in, const std::map<std::string, Tensor>& state, const std::string& path) {
  if (!in.contains("optimizer_config") || !in.contains("loss"))
    throw Corruption(fmt::format("{}: expected optimizer_config and loss", path));
  const ConfigReader given = config_reader(in["optimizer_config"], path + "/optimizer_config");
  const Json& config = in["optimizer_config"].contains("config") ? in["optimizer_config"]["config"] : Json::object();
  try {
    const Optimizer optimizer =
        read_optimizer(given.text("class_name", ""), config_reader(config, path + "/optimizer_config/config"));
    std::vector<Loss> losses = read_losses(in["loss"], model.network().output_names(), path + "/loss");
    CompileOptions options{.optimizer = optimizer,
                           .metrics = read_metrics(in.contains("metrics") ? in["metrics"] : Json(), path + "/metrics")};
    if (in.contains("plimsoll") && in["plimsoll"].is_object())
      read_details(options, losses, in["plimsoll"], path + "/plimsoll");
    options.loss = losses;
    model.compile(options);
    restore(model, optimizer, state, path);
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

bool tfjs_takes_training(const Model& model) {
  static const std::set<std::string> kLosses = {"mean_squared_error",
                                                "mean_absolute_error",
                                                "mean_absolute_percentage_error",
                                                "mean_squared_logarithmic_error",
                                                "squared_hinge",
                                                "hinge",
                                                "categorical_hinge",
                                                "logcosh",
                                                "categorical_crossentropy",
                                                "sparse_categorical_crossentropy",
                                                "binary_crossentropy",
                                                "kullback_leibler_divergence",
                                                "poisson"};
  static const std::set<std::string> kMetrics = {
      "accuracy", "acc", "mse", "mae", "mape", "binary_accuracy", "categorical_accuracy", "precision"};
  const Training& training = model.network().training;
  for (const Loss& loss : training.losses)
    if (kLosses.count(loss_name_elsewhere(loss.name())) == 0 || loss.options().from_logits) return false;
  for (const Metric& metric : training.given_metrics)
    if (kMetrics.count(metric.name()) == 0) return false;
  const OptimizerOptions& options = model.optimizer().options();
  if (const auto* sgd = std::get_if<SGDOptions>(&options)) return sgd->momentum == 0 || sgd->tfjs;
  if (const auto* rmsprop = std::get_if<RMSpropOptions>(&options)) return rmsprop->momentum == 0 || rmsprop->tfjs;
  return !std::holds_alternative<AdamaxOptions>(options);
}

OrderedJson write_training(const Model& model, const std::function<void(const std::string&, const Tensor&)>& put) {
  const Optimizer& optimizer = model.optimizer();
  const Training& training = model.network().training;
  OrderedJson losses = OrderedJson::array(), metrics = OrderedJson::array();
  for (const Loss& loss : training.losses) {
    if (!loss.is_standard())
      throw Unsupported(
          fmt::format("save_layers_model: loss \"{}\" is your own; save without the optimizer", loss.name()));
    losses.push_back(loss_name_elsewhere(loss.name()));
  }
  for (const Metric& metric : training.given_metrics) metrics.push_back(metric.name());
  put("iter", constant(static_cast<std::int32_t>(optimizer.step())));
  write_slots(model, model.trainable_weights(), put);
  std::string class_name;
  OrderedJson config = config_of(optimizer.options(), class_name);
  config["learningRate"] = optimizer.learning_rate();
  return {{"loss", losses.size() == 1 ? losses[0] : losses},
          {"metrics", std::move(metrics)},
          {"optimizer_config", {{"class_name", class_name}, {"config", std::move(config)}}},
          {"plimsoll", details_of(training)}};
}

}  // namespace plimsoll::internal
