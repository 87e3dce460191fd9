// BatchNormalization and LayerNormalization, over the last axis, which files may give by its number.
//
//   layers::BatchNormalization(); layers::LayerNormalization({.epsilon = 1e-5})
//
// Keras' defaults. In training a batch norm uses the batch's own moments and updates its averages when the step has
// succeeded; otherwise, and when it is not trainable, it uses the averages.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

namespace layers {

struct BatchNormalizationOptions {
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // With beta.
  bool scale = true;   // With gamma.
  std::string name = {};
  Shape input_shape = {};
  Regularizer gamma_regularizer = {};
  Regularizer beta_regularizer = {};
  Constraint gamma_constraint = {};
  Constraint beta_constraint = {};
  Initializer gamma_initializer = "ones";
  Initializer beta_initializer = "zeros";
  Initializer moving_mean_initializer = "zeros";
  Initializer moving_variance_initializer = "ones";
  std::int64_t axis = -1;  // The last one, counted from either end.
};
struct LayerNormalizationOptions {
  double epsilon = 1e-3;
  bool center = true;
  bool scale = true;
  std::string name = {};
  Shape input_shape = {};
  Regularizer gamma_regularizer = {};
  Regularizer beta_regularizer = {};
  Constraint gamma_constraint = {};
  Constraint beta_constraint = {};
  Initializer gamma_initializer = "ones";
  Initializer beta_initializer = "zeros";
  std::int64_t axis = -1;  // The last one, counted from either end.
};

class PLIMSOLL_API BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(const BatchNormalizationOptions& options = {});
};
class PLIMSOLL_API LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(const LayerNormalizationOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::BatchNormalizationOptions;
using layers::LayerNormalizationOptions;

}  // namespace plimsoll
