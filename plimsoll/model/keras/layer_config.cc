#include "plimsoll/model/keras/layer_config.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/layer_names.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int kMaxDepth = 32;                    // Of layers inside layers.
constexpr std::int64_t kMaxInteger = 1LL << 40;  // Larger sizes are damage.

const char* kind_of(const Json& value) { return value.type_name(); }

// A value for a message.
std::string shortened(const Json& value) {
  std::string text = json_text(value);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

std::int64_t to_integer(const Json& value, const std::string& path) {
  std::int64_t result = 0;
  if (value.is_number_integer()) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxInteger))
      throw Corruption(fmt::format("{}: {} is too large a number", path, json_text(value)));
    result = value.get<std::int64_t>();
  } else if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < static_cast<double>(kMaxInteger)) {
    result = static_cast<std::int64_t>(value.get<double>());
  } else {
    throw Corruption(fmt::format("{}: expected an integer, found {}", path, kind_of(value)));
  }
  if (std::abs(result) > kMaxInteger) throw Corruption(fmt::format("{}: {} is too large a number", path, result));
  return result;
}

OrderedJson class_and_config(const char* class_name, OrderedJson config) {
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

OrderedJson to_json(const Initializer& value) {
  using Kind = Initializer::Kind;
  const OrderedJson seed = value.seed() ? OrderedJson(*value.seed()) : OrderedJson(nullptr);
  switch (value.kind()) {
    case Kind::kUnset:
      return nullptr;
    case Kind::kConstant:
      if (value.first() == 0) return class_and_config("Zeros", OrderedJson::object());
      if (value.first() == 1) return class_and_config("Ones", OrderedJson::object());
      return class_and_config("Constant", {{"value", value.first()}});
    case Kind::kUniform:
      return class_and_config("RandomUniform", {{"minval", value.first()}, {"maxval", value.second()}, {"seed", seed}});
    case Kind::kNormal:
      return class_and_config("RandomNormal", {{"mean", value.first()}, {"stddev", value.second()}, {"seed", seed}});
    case Kind::kTruncatedNormal:
      return class_and_config("TruncatedNormal", {{"mean", value.first()}, {"stddev", value.second()}, {"seed", seed}});
    case Kind::kVarianceScaling:
      // TF.js uses "uniform" and "normal".
      return class_and_config("VarianceScaling",
                              {{"scale", value.first()},
                               {"mode", value.mode()},
                               {"distribution", value.distribution() == "uniform" ? "uniform" : "normal"},
                               {"seed", seed}});
    case Kind::kOrthogonal:
      return class_and_config("Orthogonal", {{"gain", value.first()}, {"seed", seed}});
    case Kind::kIdentity:
      return class_and_config("Identity", {{"gain", value.first()}});
  }
  return nullptr;
}

OrderedJson to_json(const Constraint& value) {
  switch (value.kind()) {
    case Constraint::Kind::kNone:
      return nullptr;
    case Constraint::Kind::kNonNegative:
      return class_and_config("NonNeg", OrderedJson::object());
    case Constraint::Kind::kUnitNorm:
      return class_and_config("UnitNorm", {{"axis", value.axis()}});
    case Constraint::Kind::kMaxNorm:
      return class_and_config("MaxNorm", {{"max_value", value.max()}, {"axis", value.axis()}});
    case Constraint::Kind::kMinMaxNorm:
      return class_and_config(
          "MinMaxNorm",
          {{"min_value", value.min()}, {"max_value", value.max()}, {"rate", value.rate()}, {"axis", value.axis()}});
  }
  return nullptr;
}

// A class with its config, or just a name.
struct ClassAndConfig {
  std::string class_name;
  const Json* config = nullptr;  // nullptr: just a name.
};

ClassAndConfig class_of(const Json& value, const std::string& path) {
  if (value.is_string()) return {value.get<std::string>(), nullptr};
  if (!value.is_object() || !value.contains("class_name") || !value["class_name"].is_string())
    throw Corruption(
        fmt::format("{}: expected a name, or an object with a class_name, found {}", path, kind_of(value)));
  static const Json kNone = Json::object();
  const Json* config = value.contains("config") && value["config"].is_object() ? &value["config"] : &kNone;
  return {value["class_name"].get<std::string>(), config};
}

std::string initializer_name(const std::string& class_name) {
  return class_name == "LeCunNormal"    ? "lecun_normal"
         : class_name == "LeCunUniform" ? "lecun_uniform"
                                        : snake_case(class_name);
}

template <class T>
T by_name(const std::string& name, const std::string& path) {
  try {
    return T(std::string_view(name));
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace

void ConfigWriter::put(std::string_view key, bool value) { out_.json[std::string(key)] = value; }
void ConfigWriter::put(std::string_view key, std::int64_t value) { out_.json[std::string(key)] = value; }
void ConfigWriter::put(std::string_view key, double value) { out_.json[std::string(key)] = value; }
void ConfigWriter::put(std::string_view key, const std::string& value) { out_.json[std::string(key)] = value; }
void ConfigWriter::put(std::string_view key, const std::vector<std::int64_t>& values) {
  out_.json[std::string(key)] = values;
}
void ConfigWriter::put(std::string_view key, const std::vector<std::vector<std::int64_t>>& values) {
  out_.json[std::string(key)] = values;
}
void ConfigWriter::put(std::string_view key, const Initializer& value) { out_.json[std::string(key)] = to_json(value); }
void ConfigWriter::put(std::string_view key, const Regularizer& value) {
  out_.json[std::string(key)] =
      value.is_set() ? class_and_config("L1L2", {{"l1", value.l1()}, {"l2", value.l2()}}) : OrderedJson(nullptr);
}
void ConfigWriter::put(std::string_view key, const Constraint& value) { out_.json[std::string(key)] = to_json(value); }
void ConfigWriter::put_null(std::string_view key) { out_.json[std::string(key)] = nullptr; }
void ConfigWriter::put_layer(std::string_view key, const LayerBase& layer, const std::string& name) {
  out_.json[std::string(key)] = write_layer(layer, name);
}

void ConfigWriter::put(std::string_view key, const std::optional<std::uint64_t>& seed) {
  out_.json[std::string(key)] = seed ? OrderedJson(*seed) : OrderedJson(nullptr);
}

ConfigReader internal::config_reader(const Json& in, std::string path, int depth) {
  if (!in.is_object()) throw Corruption(fmt::format("{}: expected an object, found {}", path, kind_of(in)));
  if (depth > kMaxDepth) throw Corruption(fmt::format("{}: layers are nested more than {} deep", path, kMaxDepth));
  return ConfigReader(std::make_unique<ConfigReader::Document>(ConfigReader::Document{in, std::move(path), depth, {}}));
}

ConfigReader::ConfigReader(std::unique_ptr<Document> in) : in_(std::move(in)) {}
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader::~ConfigReader() = default;

const Json* ConfigReader::Document::find(std::string_view key) const {
  const auto found = json.find(std::string(key));
  if (found == json.end()) return nullptr;
  read.emplace(key);
  return found->is_null() ? nullptr : &*found;
}
const std::string& ConfigReader::path() const noexcept { return in_->path; }
bool ConfigReader::has(std::string_view key) const { return in_->find(key) != nullptr; }
bool ConfigReader::is_null(std::string_view key) const {
  return in_->find(key) == nullptr && in_->json.contains(std::string(key));
}

void ConfigReader::fail(std::string_view key, std::string_view what) const {
  throw Corruption(fmt::format("{}/{}: {}", path(), key, what));
}
void ConfigReader::refuse(std::string_view key, std::string_view what) const {
  const Json* value = in_->find(key);
  throw Unsupported(fmt::format("{}/{}: {} {}", path(), key, value ? shortened(*value) : "null", what));
}

std::int64_t ConfigReader::integer(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr) fail(key, "is missing");
  return to_integer(*value, path() + "/" + std::string(key));
}
std::int64_t ConfigReader::integer(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? integer(key) : otherwise;
}
double ConfigReader::number(std::string_view key, double otherwise) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) fail(key, fmt::format("expected a number, found {}", kind_of(*value)));
  return value->get<double>();
}
bool ConfigReader::flag(std::string_view key, bool otherwise) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(key, fmt::format("expected true or false, found {}", kind_of(*value)));
  return value->get<bool>();
}
std::string ConfigReader::text(std::string_view key, std::string_view otherwise) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) fail(key, fmt::format("expected text, found {}", kind_of(*value)));
  return value->get<std::string>();
}

std::vector<std::int64_t> ConfigReader::integers(std::string_view key, std::size_t count,
                                                 std::int64_t otherwise) const {
  const Json* value = in_->find(key);
  const std::string path = in_->path + "/" + std::string(key);
  if (value == nullptr) return std::vector<std::int64_t>(count, otherwise);
  if (!value->is_array()) return std::vector<std::int64_t>(count, to_integer(*value, path));
  if (value->empty() || value->size() > kMaxRank) fail(key, "is an empty list or a very long one");
  std::vector<std::int64_t> result;
  for (const Json& each : *value) result.push_back(to_integer(each, path));
  return result;
}

std::vector<std::int64_t> ConfigReader::flat_integers(std::string_view key, std::int64_t otherwise) const {
  const Json* value = in_->find(key);
  const std::string path = in_->path + "/" + std::string(key);
  if (value == nullptr) return {otherwise};
  if (!value->is_array()) return {to_integer(*value, path)};
  std::vector<std::int64_t> result;
  for (const Json& each : *value) {
    if (!each.is_array()) {
      result.push_back(to_integer(each, path));
      continue;
    }
    for (const Json& inner : each) result.push_back(to_integer(inner, path));
  }
  return result;
}

Shape ConfigReader::shape(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr || !value->is_array()) fail(key, "expected a list of sizes");
  if (value->size() > kMaxRank) fail(key, fmt::format("has {} sizes, more than {}", value->size(), kMaxRank));
  std::vector<std::int64_t> sizes;
  for (const Json& each : *value)
    sizes.push_back(each.is_null() ? kUnknownSize : to_integer(each, path() + "/" + std::string(key)));
  try {
    return Shape(sizes);
  } catch (const InvalidArgument& error) {
    fail(key, error.what());
  }
}

Initializer ConfigReader::initializer(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return {};
  const std::string path = in_->path + "/" + std::string(key);
  const ClassAndConfig given = class_of(*value, path);
  if (given.config == nullptr) return by_name<Initializer>(given.class_name, path);
  const ConfigReader in = config_reader(*given.config, path, in_->depth);
  Initializer result;
  const std::string& name = given.class_name;
  try {
    if (name == "Constant")
      result = Initializer::constant(in.number("value", 0));
    else if (name == "RandomUniform")
      result = Initializer::random_uniform(in.number("minval", -0.05), in.number("maxval", 0.05));
    else if (name == "RandomNormal")
      result = Initializer::random_normal(in.number("mean", 0), in.number("stddev", 0.05));
    else if (name == "TruncatedNormal")
      result = Initializer::truncated_normal(in.number("mean", 0), in.number("stddev", 0.05));
    else if (name == "VarianceScaling")
      result = Initializer::variance_scaling(in.number("scale", 1), in.text("mode", "fan_in"),
                                             in.text("distribution", "normal"));
    else if (name == "Orthogonal")
      result = Initializer::orthogonal(in.number("gain", 1));
    else if (name == "Identity")
      result = Initializer::identity(in.number("gain", 1));
    else
      result = Initializer(initializer_name(name));
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
  const std::optional<std::uint64_t> seed = in.seed();
  refuse_unread(in, name);
  return seed ? result.with_seed(*seed) : result;
}

Regularizer ConfigReader::regularizer(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return {};
  const std::string path = in_->path + "/" + std::string(key);
  const ClassAndConfig given = class_of(*value, path);
  if (given.config == nullptr) return by_name<Regularizer>(given.class_name, path);
  const ConfigReader in = config_reader(*given.config, path, in_->depth);
  const std::string& name = given.class_name;
  if (name != "L1L2" && name != "L1" && name != "L2") refuse(key, "is not a regularizer that is offered");
  const double l1 = name == "L2" ? 0 : in.number("l1", name == "L1" ? 0.01 : 0);
  const double l2 = name == "L1" ? 0 : in.number("l2", name == "L2" ? 0.01 : 0);
  refuse_unread(in, name);
  try {
    return Regularizer::l1_l2(l1, l2);
  } catch (const InvalidArgument& error) {
    throw Corruption(fmt::format("{}: {}", path, error.what()));
  }
}

Constraint ConfigReader::constraint(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr) return {};
  const std::string path = in_->path + "/" + std::string(key);
  const ClassAndConfig given = class_of(*value, path);
  if (given.config == nullptr) return by_name<Constraint>(given.class_name, path);
  const ConfigReader in = config_reader(*given.config, path, in_->depth);
  const std::string& name = given.class_name;
  const std::vector<std::int64_t> axes = in.integers("axis", 1, 0);
  if (axes.size() != 1) in.refuse("axis", "is not offered; norms are taken along one axis");
  Constraint result;
  if (name == "NonNeg")
    result = Constraint::non_neg();
  else if (name == "UnitNorm")
    result = Constraint::unit_norm(axes[0]);
  else if (name == "MaxNorm")
    result = Constraint::max_norm(in.number("max_value", 2), axes[0]);
  else if (name == "MinMaxNorm")
    result =
        Constraint::min_max_norm(in.number("min_value", 0), in.number("max_value", 1), in.number("rate", 1), axes[0]);
  else
    refuse(key, "is not a constraint that is offered");
  refuse_unread(in, name);
  return result;
}

std::optional<std::uint64_t> ConfigReader::seed(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return static_cast<std::uint64_t>(integer(key));
}

std::shared_ptr<LayerBase> ConfigReader::layer(std::string_view key) const {
  const Json* value = in_->find(key);
  if (value == nullptr) fail(key, "is missing");
  return read_layer(*value, path() + "/" + std::string(key), in_->depth + 1);
}

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, LayerFactory> factories;  // Guarded by mutex.

  static Registry& instance() {
    static Registry& registry = *new Registry;  // Never destroyed: static objects may register late.
    return registry;
  }
};

}  // namespace

LayerFactory internal::registered_layer_factory(const std::string& class_name) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.factories.find(class_name);
  return found == registry.factories.end() ? LayerFactory() : found->second;
}

void layers::register_layer(const std::string& class_name, LayerFactory factory) {
  const bool taken = built_in_layer_reader(class_name) != nullptr || class_name == "Sequential" ||
                     class_name == "Model" || class_name == "Functional";
  if (class_name.empty() || taken || !factory)
    throw InvalidArgument(fmt::format("register_layer: \"{}\" {}", class_name,
                                      taken     ? "is a class of our own; choose another name"
                                      : factory ? "is empty; give the name that class_name() gives"
                                                : "has no factory; give a function that makes the layer"));
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex);
  registry.factories[class_name] = std::move(factory);
}

void ConfigWriter::put_all(const std::string& json) {
  const Json parsed = try_parse_json(json);
  if (!parsed.is_object())
    throw InvalidArgument(fmt::format("put_all: expected an object of JSON, not {}", shortened(Json(json))));
  const OrderedJson settings = parse_ordered_json(json);
  for (const auto& [key, value] : settings.items()) out_.json[key] = value;
}

std::string ConfigReader::all() const {
  for (const auto& [key, value] : in_->json.items()) in_->read.insert(key);
  return strict_json_text(in_->json);
}

Layer layers::from_config(const std::string& class_name, const std::string& json) {
  const Json settings = try_parse_json(json);
  if (!settings.is_object())
    throw InvalidArgument(
        fmt::format("{}: expected settings as an object of JSON, not {}", class_name, shortened(Json(json))));
  try {
    return Layer(read_layer({{"class_name", class_name}, {"config", settings}}, class_name));
  } catch (const Corruption& error) {  // The error is in the caller's text, not in a file.
    throw InvalidArgument(error.what());
  }
}

std::string layers::config_of(const Layer& layer) {
  return strict_json_text(write_layer(layer.base(), layer.name()).at("config"));
}

}  // namespace plimsoll
