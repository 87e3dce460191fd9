// The optimizers by Keras' names, for compile(); ops/optimizer.h says how steps change weights.
//
//   model.compile({.optimizer = optimizers::Adam({.learning_rate = 1e-3f}), .loss = "mse"});
//   model.compile({.optimizer = "rmsprop", .loss = "mse"});
#pragma once

#include <concepts>
#include <optional>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll {

namespace optimizers {
inline Optimizer SGD(const SGDOptions& options = {}) { return Optimizer(options); }
inline Optimizer RMSprop(const RMSpropOptions& options = {}) { return Optimizer(options); }
inline Optimizer Adagrad(const AdagradOptions& options = {}) { return Optimizer(options); }
inline Optimizer Adadelta(const AdadeltaOptions& options = {}) { return Optimizer(options); }
inline Optimizer Adam(const AdamOptions& options = {}) { return Optimizer(options); }
inline Optimizer AdamW(const AdamOptions& options = {.weight_decay = 0.004}) { return Optimizer(options); }
inline Optimizer Adamax(const AdamaxOptions& options = {}) { return Optimizer(options); }
// "sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamw", "adamax", with Keras' defaults. Throws InvalidArgument.
PLIMSOLL_API Optimizer by_name(std::string_view name);
}  // namespace optimizers

// An optimizer, or its name.
class OptimizerChoice {
 public:
  OptimizerChoice() = default;
  OptimizerChoice(const Optimizer& optimizer) : optimizer_(optimizer) {}
  OptimizerChoice(const char* name) : optimizer_(optimizers::by_name(name)) {}
  const std::optional<Optimizer>& get() const noexcept { return optimizer_; }

 private:
  std::optional<Optimizer> optimizer_;
};

}  // namespace plimsoll
