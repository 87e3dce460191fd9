// The training configuration of a Layers model: optimizer, loss, metrics, and the optimizer's state.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plimsoll/model/model.h"

namespace plimsoll::internal {

// Compiles the model and restores the optimizer. Throws Corruption and Unsupported.
void read_training(Model& model, const nlohmann::json& in, const std::map<std::string, Tensor>& state,
                   const std::string& path);
// Whether TF.js can read the result of write_training(): it has fewer losses, metrics and optimizers.
bool tfjs_takes_training(const Model& model);
// Passes on the state tensor by tensor. Throws FailedPrecondition before compile(), Unsupported for your own losses and
// metrics.
nlohmann::ordered_json write_training(const Model& model,
                                      const std::function<void(const std::string& name, const Tensor& value)>& put);

}  // namespace plimsoll::internal
