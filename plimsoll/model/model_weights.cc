#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/object_paths.h"
#include "plimsoll/model/keras/optimizer_keys.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

void require_built(const Network& network, const char* where) {
  if (!network.is_connected())
    throw FailedPrecondition(
        fmt::format("{}: model \"{}\" has no weights yet; give its first layer an input_shape", where, network.name()));
}

void refuse_hdf5(const std::string& path, const char* where) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".h5" || extension == ".hdf5" || extension == ".keras")
    throw Unsupported(fmt::format(
        "{}: \"{}\" is the name of a file of Keras ({}), which is not offered; leave out \"{}\" (in Keras, too: "
        "`model.save_weights(\"{}\", save_format=\"tf\")`), or convert a whole model with `tensorflowjs_converter "
        "--input_format=keras`",
        where, path, extension == ".keras" ? "zip" : "HDF5", extension, fs::path(path).stem().string()));
}

// Trainable ones, in Keras' order.
std::vector<ModelVariable> parameters_of(const Network& network, const std::vector<ModelVariable>& all) {
  std::set<std::uint64_t> trained;
  for (const LayerBase::Weight& weight : network.unique_weights())
    if (weight.trainable) trained.insert(weight.variable.id());
  std::vector<ModelVariable> result;
  for (const ModelVariable& each : all)
    if (trained.count(each.variable.id()) > 0) result.push_back(each);
  return result;
}

// A weight to be written: where it is in a spill file it stays there, and this is a copy, charged to the fit that put
// it there.
Tensor value_to_save(const Network& network, const Variable& weight) {
  Tensor value = weight.value();
  const StorageRef bytes = weight.share_bytes();
  if (!Parking::bytes_of(*bytes)) return value;
  std::optional<BudgetScope> charged;
  if (network.training.saving) charged.emplace(*network.training.saving);
  Tensor copy =
      make_tensor({.op = "save_weights", .category = Category::kOther}, value.shape(), value.dtype(), device_of(value));
  return Parking::read(*bytes, writable(copy).bytes()) ? copy : value;
}

// Tensors and the objects that hold them, as they come.
class ObjectWriter {
 public:
  explicit ObjectWriter(const fs::path& prefix) : writer_(prefix) {}
  void add(const ObjectPath& path, const Tensor& value, const std::string& full_name) {
    writer_.add(object_key(path), value);
    objects_.push_back({path, full_name});
  }
  void commit() {
    const std::string graph = make_object_graph(objects_);
    writer_.add_strings(kObjectGraphKey, {}, {&graph, 1});
    writer_.commit();
  }

 private:
  BundleWriter writer_;
  std::vector<ObjectVariable> objects_;
};

template <class Slots>
void write_optimizer(ObjectWriter& out, const Training& training, const std::vector<ModelVariable>& parameters,
                     Slots&& slots_of) {
  const Optimizer& optimizer = *training.optimizer;
  out.add(kIterationsPath, constant(optimizer.step()), "iteration");
  out.add(kLearningRatePath, constant(static_cast<float>(optimizer.learning_rate())), "learning_rate");
  const auto charged_slots = [&](const Variable& parameter) {
    std::optional<BudgetScope> charged;
    if (training.saving) charged.emplace(*training.saving);
    return slots_of(parameter);
  };
  for (const OptimizerKey& key : optimizer_keys(optimizer, parameters)) {
    const TidyScope one;
    for (const Optimizer::Slot& slot : charged_slots(key.parameter))
      if (slot.name == key.slot) out.add(key.path, slot.value, key.parameter.name() + "/" + key.slot);
  }
}

// The slots of all parameters, in the first rank when a job has them; other ranks send what they have.
class GatheredSlots {
 public:
  GatheredSlots(const Network& network, const std::vector<ModelVariable>& parameters)
      : optimizer_(*network.training.optimizer), is_spread_(network.training.spread != nullptr) {
    for (const ModelVariable& each : parameters)
      if (is_spread_) slots_[each.variable.id()] = network.training.spread->whole_slots(optimizer_, each.variable);
  }
  std::vector<Optimizer::Slot> operator()(const Variable& parameter) const {
    return is_spread_ ? slots_.at(parameter.id()) : optimizer_.slots(parameter);
  }

 private:
  const Optimizer& optimizer_;
  const bool is_spread_;
  std::map<std::uint64_t, std::vector<Optimizer::Slot>> slots_;
};

// Where the variables are in the file: all by Keras' paths, else all by the names of their objects, or by their own
// names in a file without objects. Keys by paths when neither is complete, for the error to name.
std::vector<std::string> keys_in(const BundleReader& reader, const std::vector<ModelVariable>& variables) {
  std::multimap<std::string, std::string> named;
  for (const ObjectName& name : read_object_graph(reader)) named.emplace(name.full_name, name.key);
  const bool has_objects = reader.contains(kObjectGraphKey);
  std::vector<std::string> by_path, by_name;
  for (const ModelVariable& each : variables) {
    const std::string& name = each.variable.name();
    by_path.push_back(object_key(each.path));
    if (!has_objects && reader.contains(name)) by_name.push_back(name);
    if (named.count(name) == 1) by_name.push_back(named.find(name)->second);
  }
  const auto all = [&](const std::vector<std::string>& keys) {
    return keys.size() == variables.size() &&
           std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return reader.contains(key); });
  };
  return !all(by_path) && all(by_name) ? by_name : by_path;
}

// The optimizer's state from a checkpoint, read and checked, not yet applied.
class OptimizerState {
 public:
  OptimizerState(const BundleReader& reader, const Optimizer& optimizer, const std::vector<ModelVariable>& parameters)
      : optimizer_(optimizer) {
    const std::string now = object_key(kIterationsPath), before = object_key({"optimizer", "iter"});
    const bool is_new = reader.contains(now);
    if (!is_new && !reader.contains(before)) return;
    step_ = reader.read(is_new ? now : before).item<std::int64_t>();
    if (*step_ < 0) throw Corruption(fmt::format("{}: the optimizer has taken {} steps", reader.prefix(), *step_));
    for (const OptimizerKey& key : optimizer_keys(optimizer, parameters)) {
      const std::string name = is_new ? object_key(key.path) : key.old_key;
      if (!reader.contains(name)) continue;
      const BundleEntry& entry = reader.entry(name);
      if (!(entry.shape == key.parameter.shape()) || entry.dtype != key.parameter.dtype())
        throw InvalidArgument(
            fmt::format("load_weights: \"{}\" of {} is {} {}, which is not a state of variable \"{}\" {}; compile with "
                        "the optimizer "
                        "that it was saved with",
                        name, reader.prefix(), entry.dtype_name, entry.shape.to_string(), key.parameter.name(),
                        key.parameter.shape().to_string()));
      const std::uint64_t id = key.parameter.id();
      if (slots_.count(id) == 0) order_.push_back(key.parameter);
      slots_[id].push_back({key.slot, reader.read(name)});
    }
  }

  // All or nothing, unless memory is refused twice.
  void put_in_force() const {
    if (!step_) return;
    std::vector<std::vector<Optimizer::Slot>> old;
    try {
      for (const Variable& parameter : order_) {
        old.push_back(optimizer_.slots(parameter));
        optimizer_.restore(parameter, slots_.at(parameter.id()));
      }
    } catch (...) {
      for (std::size_t i = 0; i < old.size(); ++i) optimizer_.restore(order_[i], old[i]);
      throw;
    }
    optimizer_.restore_step(*step_);
  }

 private:
  const Optimizer optimizer_;
  std::optional<std::int64_t> step_;
  std::vector<Variable> order_;
  std::map<std::uint64_t, std::vector<Optimizer::Slot>> slots_;
};

}  // namespace

void Model::save_weights(const std::string& path) const {
  require_built(*network_, "save_weights");
  refuse_hdf5(path, "save_weights");
  const Untracked outside;
  const TidyScope scope;
  const std::vector<ModelVariable> variables = object_variables(*network_);
  const Training& training = network_->training;
  std::optional<GatheredSlots> slots;
  if (training.is_compiled() && training.optimizer->step() > 0)
    slots.emplace(*network_, parameters_of(*network_, variables));
  if (training.job && training.job->rank() != 0) return;  // The first process writes.
  ObjectWriter out(path);
  for (const ModelVariable& each : variables) {
    const TidyScope one;
    out.add(each.path, value_to_save(*network_, each.variable), each.variable.name());
  }
  if (slots) write_optimizer(out, training, parameters_of(*network_, variables), *slots);
  out.commit();
  const fs::path prefix(path);
  const std::string name = prefix.filename().string();
  write_checkpoint_state(prefix.parent_path().empty() ? "." : prefix.parent_path(), {.latest = name, .all = {name}});
}

namespace {

// Warns of weights of layers that the model does not have: the checkpoint may belong to another model.
void warn_of_layers(const std::string& path, std::vector<std::string> extra) {
  std::erase_if(extra, [](const std::string& key) {
    return !key.starts_with("layer_with_weights-") || key.find(".OPTIMIZER_SLOT") != std::string::npos;
  });
  if (!extra.empty())
    log_message(LogLevel::warning,
                fmt::format("load_weights: checkpoint \"{}\" has {} that the model has not, {} the first; is it "
                            "another model's?",
                            path, plural(extra.size(), "weight"), extra[0]));
}

void refuse_folder(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || fs::exists(path + ".index", ignored)) return;
  const std::string latest = latest_checkpoint(path);
  throw InvalidArgument(
      fmt::format("load_weights: \"{}\" is a folder; give the name of a checkpoint in it{}", path,
                  latest.empty() ? ", and it has none" : fmt::format(": its latest is \"{}\"", latest)));
}

}  // namespace

void Model::load_weights(const std::string& path) const {
  require_built(*network_, "load_weights");
  refuse_hdf5(path, "load_weights");
  refuse_folder(path);
  const Untracked outside;
  const TidyScope scope;
  const BundleReader reader(path);
  const std::vector<ModelVariable> variables = object_variables(*network_);
  const std::vector<std::string> keys = keys_in(reader, variables);
  std::vector<CheckpointSpec> wanted;
  for (std::size_t i = 0; i < keys.size(); ++i)
    wanted.push_back({keys[i], variables[i].variable.dtype(), variables[i].variable.shape()});
  warn_of_layers(path, check_checkpoint_fits(reader, wanted));
  for (const CheckpointSpec& spec : wanted) reader.verify(spec.name);
  std::vector<TensorView> destinations;  // A variable whose value is held elsewhere gets its own bytes: may fail.
  for (const ModelVariable& each : variables) destinations.push_back(each.variable.writable_value());
  if (network_->training.is_compiled())
    OptimizerState(reader, *network_->training.optimizer, parameters_of(*network_, variables)).put_in_force();
  if (!network_->training.is_compiled() || !network_->training.optimizer->is_spread()) {
    network_->training.spread = nullptr;
    network_->training.job = nullptr;
  }
  for (std::size_t i = 0; i < variables.size(); ++i)
    reader.read_into(wanted[i].name,
                     HostWrite(Runtime::instance().device(variables[i].variable.device()), destinations[i]));
}

}  // namespace plimsoll
