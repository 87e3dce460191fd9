#include "plimsoll/model/keras/optimizer_keys.h"

#include <span>

#include "plimsoll/model/keras/slot_names.h"

namespace plimsoll::internal {
namespace {

// Our names of the slots, in the order in which Keras makes them, and whether it makes all slots of a variable before
// those of the next.
struct KerasSlots {
  std::vector<std::string> names;
  bool by_variable = true;
};

KerasSlots keras_slots(const OptimizerOptions& options) {
  if (const auto* sgd = std::get_if<SGDOptions>(&options))
    return {sgd->momentum != 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{}};
  if (const auto* rmsprop = std::get_if<RMSpropOptions>(&options)) {
    KerasSlots slots{{"mean_square"}, false};
    if (rmsprop->momentum != 0) slots.names.push_back("momentum");
    if (rmsprop->centered) slots.names.push_back("mean_gradient");
    return slots;
  }
  if (std::holds_alternative<AdagradOptions>(options)) return {{"sum_of_squares"}};
  if (std::holds_alternative<AdadeltaOptions>(options)) return {{"mean_square", "mean_square_update"}};
  if (std::holds_alternative<AdamaxOptions>(options)) return {{"m", "u"}};
  return {{"m", "v"}};
}

std::string old_key_of(const ObjectPath& variable, const std::string& slot) {
  std::string key = object_key(variable);  // ".../kernel/.ATTRIBUTES/VARIABLE_VALUE"
  const std::size_t at = key.rfind(".ATTRIBUTES/");
  return key.insert(at, ".OPTIMIZER_SLOT/optimizer/" + slot + "/");
}

}  // namespace

std::vector<OptimizerKey> optimizer_keys(const Optimizer& optimizer, const std::vector<ModelVariable>& parameters) {
  const OptimizerOptions& options = optimizer.options();
  const KerasSlots slots = keras_slots(options);
  std::vector<OptimizerKey> keys;
  const auto add = [&](const ModelVariable& parameter, const std::string& slot) {
    // The first of Keras' list is the number of iterations.
    keys.push_back({parameter.variable,
                    slot,
                    {"optimizer", "_variables", std::to_string(keys.size() + 1)},
                    old_key_of(parameter.path, slot_name_elsewhere(options, slot))});
  };
  if (slots.by_variable) {
    for (const ModelVariable& parameter : parameters)
      for (const std::string& slot : slots.names) add(parameter, slot);
  } else {
    for (const std::string& slot : slots.names)
      for (const ModelVariable& parameter : parameters) add(parameter, slot);
  }
  return keys;
}

}  // namespace plimsoll::internal
