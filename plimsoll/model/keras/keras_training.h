// The training configuration in Keras' files: optimizer, loss, metrics, and the optimizer's state.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/model.h"

namespace plimsoll::internal {

// Compiles the model according to compile_config (Keras 3) or training_config (legacy). Does nothing without a loss or
// an optimizer. Throws Corruption and Unsupported.
void read_keras_training(Model& model, const nlohmann::json& in, const std::string& path);

// The optimizer's variables are numbered: 0 counts steps, 1 is the learning rate, the others belong to `parameters`.
// `get` returns number i, or an empty handle when there is none. Throws Corruption.
void restore_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                             const std::function<Tensor(std::size_t number)>& get, const std::string& path);

// The compile_config. Throws FailedPrecondition before compile(), Unsupported for your own losses.
nlohmann::ordered_json write_keras_training(const Model& model);
// The optimizer's variables, by number.
void write_keras_optimizer(const Model& model, const std::vector<Variable>& parameters,
                           const std::function<void(std::size_t number, const Tensor& value)>& put);

}  // namespace plimsoll::internal
