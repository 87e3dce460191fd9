// values_of: all that steps of a model change and keep, to compare it bit for bit.
//
//   EXPECT_EQ(values_of(planned), values_of(direct));
#pragma once

#include <vector>

#include "plimsoll/model/model.h"

namespace plimsoll {

using Values = std::vector<std::vector<float>>;

// Weights, then the optimizer's state of those that are trained.
inline Values values_of(const Model& model) {
  Values result;
  for (const Variable& weight : model.weights()) result.push_back(weight.value().to_vector<float>());
  for (const Variable& weight : model.trainable_weights())
    for (const Optimizer::Slot& slot : model.optimizer().slots(weight)) result.push_back(slot.value.to_vector<float>());
  return result;
}

}  // namespace plimsoll
