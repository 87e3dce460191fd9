// The keys of an optimizer's state in a Keras checkpoint.
//
// Keras since 2.11: optimizer/_iterations, optimizer/_variables/1, .. in the order in which it makes them. Before: with
// each variable, <variable>/.OPTIMIZER_SLOT/optimizer/m, and optimizer/iter. The first form is written, both are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/io/bundle.h"
#include "plimsoll/model/keras/object_paths.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll::internal {

// One of the optimizer's tensors: its parameter, its slot, and where Keras stores it.
struct OptimizerKey {
  Variable parameter;
  std::string slot;  // Ours: "m".
  ObjectPath path;   // Since 2.11.
  std::string old_key;
};

// For these parameters, in the order of Keras' model.trainable_variables. Empty for an optimizer without slots.
std::vector<OptimizerKey> optimizer_keys(const Optimizer& optimizer, const std::vector<ModelVariable>& parameters);

inline const ObjectPath kIterationsPath = {"optimizer", "_iterations"};
inline const ObjectPath kLearningRatePath = {"optimizer", "_learning_rate"};

}  // namespace plimsoll::internal
