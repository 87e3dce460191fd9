#include "plimsoll/model/keras/keras_training.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <variant>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/keras/optimizer_keys.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll::internal {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

// Keras' classes of losses, and our further names for some of them besides the class's name in snake case.
struct KerasLoss {
  const char *theirs, *ours = "";
};
constexpr KerasLoss kLosses[] = {{"MeanSquaredError", "mse"},
                                 {"MeanAbsoluteError", "mae"},
                                 {"MeanAbsolutePercentageError", "mape"},
                                 {"MeanSquaredLogarithmicError", "msle"},
                                 {"LogCosh", "logcosh"},
                                 {"KLDivergence", "kullback_leibler_divergence"},
                                 {"Huber", "huber_loss"},
                                 {"Poisson"},
                                 {"Hinge"},
                                 {"SquaredHinge"},
                                 {"CategoricalHinge"},
                                 {"CosineSimilarity"},
                                 {"BinaryCrossentropy"},
                                 {"CategoricalCrossentropy"},
                                 {"SparseCategoricalCrossentropy"}};

// A name, or {"class_name", "config"}.
struct Named {
  std::string name;
  Json config = Json::object();
};
Named named(const Json& in, const std::string& path) {
  if (in.is_string()) return {in.get<std::string>()};
  if (!in.is_object() || !in.contains("class_name") || !in["class_name"].is_string())
    throw Unsupported(fmt::format("{}: neither a name nor a class is not offered; load with compile = false", path));
  return {in["class_name"].get<std::string>(),
          in.contains("config") && in["config"].is_object() ? in["config"] : Json::object()};
}

// Settings that change training and that are not supported.
void refuse_settings(const ConfigReader& in, std::initializer_list<const char*> known) {
  std::set<std::string> read(known.begin(), known.end());
  for (const auto& [key, value] : in.document().json.items())
    if (read.count(key) == 0 && !value.is_null() && value != false)
      in.refuse(key, "is a setting that is not offered; load with compile = false");
}

Optimizer make_optimizer(const std::string& name, const ConfigReader& in) {
  const Json& config = in.document().json;
  if (config.contains("learning_rate") && config["learning_rate"].is_object())
    in.refuse("learning_rate", "is a schedule, which is not offered; load with compile = false");
  const double rate = in.number("learning_rate", 0.001), epsilon = in.number("epsilon", 1e-7);
  const double momentum = in.number("momentum", 0);
  const double beta_1 = in.number("beta_1", 0.9), beta_2 = in.number("beta_2", 0.999);
  const bool decays = in.has("weight_decay") && in.number("weight_decay", 0) != 0;
  if (decays && name != "Adam" && name != "AdamW") in.refuse("weight_decay", "is offered of Adam and AdamW only");
  if (in.number("decay", 0) != 0) in.refuse("decay", "is not offered");
  if (name == "Adam" || name == "AdamW")
    return Optimizer(AdamOptions{rate, beta_1, beta_2, epsilon, decays ? in.number("weight_decay", 0) : 0});
  if (name == "Adamax") return Optimizer(AdamaxOptions{rate, beta_1, beta_2, epsilon});
  if (name == "SGD")
    return Optimizer(SGDOptions{.learning_rate = rate, .momentum = momentum, .nesterov = in.flag("nesterov", false)});
  if (name == "RMSprop")
    return Optimizer(RMSpropOptions{.learning_rate = rate,
                                    .rho = in.number("rho", 0.9),
                                    .momentum = momentum,
                                    .epsilon = epsilon,
                                    .centered = in.flag("centered", false)});
  if (name == "Adagrad") return Optimizer(AdagradOptions{rate, in.number("initial_accumulator_value", 0.1), epsilon});
  if (name == "Adadelta") return Optimizer(AdadeltaOptions{rate, in.number("rho", 0.95), epsilon});
  throw Unsupported(fmt::format("{}: optimizer \"{}\" is not offered; load with compile = false", in.path(), name));
}

void read_optimizer(const Json& in, CompileOptions& options, const std::string& path) {
  const Named given = named(in, path);
  if (in.is_string()) {
    options.optimizer = optimizers::by_name(given.name);
    return;
  }
  const ConfigReader config = config_reader(given.config, path + "/config");
  refuse_settings(config, {"name", "learning_rate", "weight_decay", "clipnorm", "global_clipnorm", "clipvalue",
                           "ema_momentum", "beta_1", "beta_2", "epsilon", "momentum", "nesterov", "rho", "centered",
                           "initial_accumulator_value", "decay", "jit_compile", "is_legacy_optimizer"});
  options.clip_norm = config.number("clipnorm", 0);
  options.clip_value = config.number("clipvalue", 0);
  options.global_clip_norm = config.number("global_clipnorm", 0);
  const std::size_t package = given.name.rfind('>');  // Keras 2 writes "Custom>Adam" of its new optimizers.
  options.optimizer =
      make_optimizer(package == std::string::npos ? given.name : given.name.substr(package + 1), config);
}

Loss read_loss(const Json& in, const std::string& path) {
  const Named given = named(in, path);
  const ConfigReader config = config_reader(given.config, path + "/config");
  refuse_settings(config, {"name", "reduction", "from_logits", "label_smoothing", "delta", "axis", "dtype", "fn"});
  const std::string reduction = config.text("reduction", "auto");
  if (reduction != "auto" && reduction != "sum_over_batch_size" && reduction != "mean")
    config.refuse("reduction", "is not offered; losses are means; load with compile = false");
  if (config.integer("axis", -1) != -1) config.refuse("axis", "is not offered; load with compile = false");
  try {
    const Loss loss(snake_case(given.name));
    LossOptions options = loss.options();
    options.from_logits = config.flag("from_logits", options.from_logits);
    options.label_smoothing = config.number("label_smoothing", options.label_smoothing);
    options.delta = config.number("delta", options.delta);
    return loss.with(options);
  } catch (const InvalidArgument& error) {
    throw Unsupported(fmt::format("{}: {}; load with compile = false", path, error.what()));
  }
}

// One for all outputs, a list, or by the outputs' names.
std::vector<const Json*> per_output(const Json& in, const std::vector<std::string>& outputs, const std::string& path) {
  std::vector<const Json*> result;
  if (in.is_array()) {
    for (const Json& each : in) result.push_back(&each);
  } else if (in.is_object() && !in.contains("class_name")) {
    for (const std::string& output : outputs) {
      if (!in.contains(output)) throw Corruption(fmt::format("{}: nothing for output \"{}\"", path, output));
      result.push_back(&in[output]);
    }
  } else {
    result.push_back(&in);
  }
  return result;
}

void read_metrics(const Json& in, std::vector<Metric>& to, const std::string& path) {
  if (in.is_null()) return;
  if (in.is_array()) {
    for (const Json& each : in) read_metrics(each, to, path);
    return;
  }
  const Named given = named(in, path);
  try {
    const std::string name = snake_case(given.name);
    // Keras includes the mean of the loss among them, and wraps functions.
    if (name == "mean_metric_wrapper" && given.config.contains("fn")) return read_metrics(given.config["fn"], to, path);
    to.emplace_back(name);
  } catch (const InvalidArgument& error) {
    throw Unsupported(fmt::format("{}: {}; load with compile = false", path, error.what()));
  }
}

std::vector<ModelVariable> as_parameters(const std::vector<Variable>& parameters) {
  std::vector<ModelVariable> result;
  for (const Variable& each : parameters) result.push_back({{"x"}, each});
  return result;
}
// optimizer_keys() counts from 1, after the number of steps; here the learning rate comes in between.
std::size_t number_of(const OptimizerKey& key) {
  std::size_t number = 0;
  for (const char digit : key.path.back()) number = number * 10 + static_cast<std::size_t>(digit - '0');
  return number + 1;
}

}  // namespace

void read_keras_training(Model& model, const Json& in, const std::string& path) {
  const char* const optimizer = in.contains("optimizer") ? "optimizer" : "optimizer_config";
  if (!in.contains(optimizer) || in[optimizer].is_null() || !in.contains("loss") || in["loss"].is_null()) return;
  try {
    CompileOptions options;
    read_optimizer(in[optimizer], options, path + "/" + optimizer);
    std::vector<Loss> losses;
    for (const Json* each : per_output(in["loss"], model.network().output_names(), path + "/loss"))
      losses.push_back(read_loss(*each, path + "/loss"));
    options.loss = losses;
    if (in.contains("metrics")) read_metrics(in["metrics"], options.metrics, path + "/metrics");
    if (in.contains("loss_weights") && !in["loss_weights"].is_null())
      for (const Json* each : per_output(in["loss_weights"], model.network().output_names(), path + "/loss_weights")) {
        if (!each->is_number()) throw Corruption(fmt::format("{}/loss_weights: expected numbers", path));
        options.loss_weights.push_back(each->get<double>());
      }
    model.compile(options);
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

void restore_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                             const std::function<Tensor(std::size_t)>& get, const std::string& path) {
  const Optimizer& optimizer = model.optimizer();
  const Tensor steps = get(0);
  if (steps.is_empty_handle()) return;
  std::map<std::uint64_t, std::vector<Optimizer::Slot>> slots;
  try {
    for (const OptimizerKey& key : optimizer_keys(optimizer, as_parameters(parameters))) {
      const Tensor value = get(number_of(key));
      if (value.is_empty_handle()) return;  // Saved before its first step.
      slots[key.parameter.id()].push_back({key.slot, value});
    }
    for (const Variable& parameter : parameters)
      if (const auto found = slots.find(parameter.id()); found != slots.end())
        optimizer.restore(parameter, found->second);
    optimizer.restore_step(steps.dtype() == i64 ? steps.item<std::int64_t>() : steps.item<std::int32_t>());
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: optimizer: {}", path, error.what()));
  }
}

namespace {

OrderedJson class_entry(const char* module, const std::string& class_name, OrderedJson config) {
  return {{"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

OrderedJson optimizer_json(const Optimizer& optimizer, const GradientClipping& clipping) {
  std::string class_name;
  OrderedJson config = {{"name", "optimizer"}, {"learning_rate", optimizer.learning_rate()}};
  std::visit(
      [&]<class O>(const O& o) {
        if constexpr (std::is_same_v<O, AdamOptions>) {
          class_name = o.weight_decay != 0 ? "AdamW" : "Adam";
          if (o.weight_decay != 0) config["weight_decay"] = o.weight_decay;
        }
        if constexpr (std::is_same_v<O, AdamaxOptions>) class_name = "Adamax";
        if constexpr (std::is_same_v<O, SGDOptions>)
          class_name = "SGD", config["momentum"] = o.momentum, config["nesterov"] = o.nesterov;
        if constexpr (std::is_same_v<O, RMSpropOptions>)
          class_name = "RMSprop", config["momentum"] = o.momentum, config["centered"] = o.centered;
        if constexpr (std::is_same_v<O, AdagradOptions>)
          class_name = "Adagrad", config["initial_accumulator_value"] = o.initial_accumulator_value;
        if constexpr (std::is_same_v<O, AdadeltaOptions>) class_name = "Adadelta";
        if constexpr (requires { o.beta_1; }) config["beta_1"] = o.beta_1, config["beta_2"] = o.beta_2;
        if constexpr (requires { o.rho; }) config["rho"] = o.rho;
        if constexpr (requires { o.epsilon; }) config["epsilon"] = o.epsilon;
      },
      optimizer.options());
  if (clipping.norm != 0) config["clipnorm"] = clipping.norm;
  if (clipping.value != 0) config["clipvalue"] = clipping.value;
  if (clipping.global_norm != 0) config["global_clipnorm"] = clipping.global_norm;
  return class_entry("keras.optimizers", class_name, std::move(config));
}

OrderedJson loss_json(const Loss& loss) {
  for (const KerasLoss& each : kLosses) {
    const std::string name = snake_case(each.theirs);
    if (!loss.is_standard() || (loss.name() != name && loss.name() != each.ours)) continue;
    OrderedJson config = {{"name", name}, {"reduction", "sum_over_batch_size"}};
    if (name.ends_with("crossentropy")) config["from_logits"] = loss.options().from_logits;
    if (name == "binary_crossentropy" || name == "categorical_crossentropy")
      config["label_smoothing"] = loss.options().label_smoothing;
    if (name == "huber") config["delta"] = loss.options().delta;
    return class_entry("keras.losses", each.theirs, std::move(config));
  }
  throw Unsupported(
      fmt::format("save_keras: loss \"{}\" is not one of Keras'; save with include_optimizer = false", loss.name()));
}

}  // namespace

OrderedJson write_keras_training(const Model& model) {
  const Training& training = model.network().training;
  OrderedJson losses = OrderedJson::array(), metrics = OrderedJson::array();
  for (const Loss& loss : training.losses) losses.push_back(loss_json(loss));
  for (const Metric& metric : training.given_metrics) metrics.push_back(metric.name());
  const bool is_one = losses.size() == 1;
  OrderedJson weights = nullptr;
  if (!is_one) weights = training.loss_weights;
  // With several outputs Keras expects metrics for each of them.
  OrderedJson each = metrics;
  if (!is_one && !metrics.empty()) {
    each = OrderedJson::array();
    for (std::size_t i = 0; i < losses.size(); ++i) each.push_back(metrics);
  }
  return {{"optimizer", optimizer_json(model.optimizer(), training.clipping)},
          {"loss", is_one ? losses[0] : losses},
          {"loss_weights", std::move(weights)},
          {"metrics", metrics.empty() ? OrderedJson(nullptr) : std::move(each)},
          {"weighted_metrics", nullptr},
          {"run_eagerly", false},
          {"steps_per_execution", 1},
          {"jit_compile", false}};
}

void write_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                           const std::function<void(std::size_t, const Tensor&)>& put) {
  const Optimizer& optimizer = model.optimizer();
  put(0, constant(static_cast<std::int32_t>(optimizer.step())));
  put(1, constant(static_cast<float>(optimizer.learning_rate())));
  std::map<std::uint64_t, std::vector<Optimizer::Slot>> slots;
  for (const Variable& parameter : parameters) slots[parameter.id()] = optimizer.slots(parameter);
  for (const OptimizerKey& key : optimizer_keys(optimizer, as_parameters(parameters)))
    for (const Optimizer::Slot& slot : slots[key.parameter.id()])
      if (slot.name == key.slot) put(number_of(key), slot.value);
}

}  // namespace plimsoll::internal
