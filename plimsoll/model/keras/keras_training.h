// The training configuration of Keras' files: optimizer, loss, metrics, and where the optimizer stood.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/model.h"

namespace plimsoll::internal {

// Compiles the model as compile_config (Keras 3) or training_config (legacy) says. Nothing happens for one without a
// loss or an optimizer. Throws Corruption and Unsupported.
void read_keras_training(Model& model, const nlohmann::json& in, const std::string& path);

// The optimizer's variables are numbered: 0 counts steps, 1 is the learning rate, the others are those of `parameters`.
// `get` gives number i, or an empty handle when there is none. Throws Corruption.
void restore_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                             const std::function<Tensor(std::size_t number)>& get, const std::string& path);

// What compile_config says. Throws FailedPrecondition before compile(), Unsupported for losses of your own.
nlohmann::ordered_json write_keras_training(const Model& model);
// The optimizer's variables, by their numbers.
void write_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                           const std::function<void(std::size_t number, const Tensor& value)>& put);

}  // namespace plimsoll::internal
