// Optimizer updates: one pass over a parameter, its gradient and its slots, in place.
//
//   update_adam({.learning_rate = 1e-3, .step = 1}, gradient, weights, m, v);
//
// The formulas are those of Keras (2.11 and later); w parameter, g gradient, t the step, from 1. Where TF.js differs, a
// field chooses. Factors of a whole step (1 - beta^t) are computed in f64, elements in their own type.
// Requires f32 or f64, one dtype and size for all tensors of a call, no overlap. Thread safety: any thread.
// Cost: memory speed; no allocation, never throws. An element's result depends only on that element.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// w -= learning_rate g
PLIMSOLL_API void update_sgd(double learning_rate, const ConstTensorView& gradient,
                             const TensorView& parameter) noexcept;

// Keras:               v = momentum v - learning_rate g;  w += v,               nesterov: w += momentum v -
// learning_rate g rate_outside_velocity (TF.js, TensorFlow 1):
//                      v = momentum v + g;  w -= learning_rate v,  nesterov: w -= learning_rate (g + momentum v)
struct MomentumUpdate {
  double learning_rate = 0.01, momentum = 0.9;
  bool nesterov = false, rate_outside_velocity = false;
};
PLIMSOLL_API void update_momentum(const MomentumUpdate& options, const ConstTensorView& gradient,
                                  const TensorView& parameter, const TensorView& velocity) noexcept;

// s = rho s + (1 - rho) g^2;  step = learning_rate g / sqrt(s + epsilon)
// With a mean gradient (centered):  a = rho a + (1 - rho) g;  step = learning_rate g / sqrt(s - a^2 + epsilon)
// With a momentum slot:             m = momentum m + step;  w -= m;  otherwise w -= step
// TF.js subtracts epsilon when centered: pass the negative of it. Slots without an address are not used.
struct RmspropUpdate {
  double learning_rate = 0.001, rho = 0.9, momentum = 0, epsilon = 1e-7;
};
struct RmspropSlots {
  TensorView mean_square, mean_gradient, momentum;
};
PLIMSOLL_API void update_rmsprop(const RmspropUpdate& options, const ConstTensorView& gradient,
                                 const TensorView& parameter, const RmspropSlots& slots) noexcept;

// s += g^2;  w -= learning_rate g / sqrt(s + epsilon)
struct AdagradUpdate {
  double learning_rate = 0.001, epsilon = 1e-7;
};
PLIMSOLL_API void update_adagrad(const AdagradUpdate& options, const ConstTensorView& gradient,
                                 const TensorView& parameter, const TensorView& sum_of_squares) noexcept;

// s = rho s + (1 - rho) g^2;  d = g sqrt(u + epsilon) / sqrt(s + epsilon);  u = rho u + (1 - rho) d^2;
// w -= learning_rate d
// previous_mean_square (TF.js): d divides by the root of what s was before this step.
struct AdadeltaUpdate {
  double learning_rate = 0.001, rho = 0.95, epsilon = 1e-7;
  bool previous_mean_square = false;
};
PLIMSOLL_API void update_adadelta(const AdadeltaUpdate& options, const ConstTensorView& gradient,
                                  const TensorView& parameter, const TensorView& mean_square,
                                  const TensorView& mean_square_update) noexcept;

// m += (g - m) (1 - beta_1);  v += (g^2 - v) (1 - beta_2);
// w -= learning_rate sqrt(1 - beta_2^t) / (1 - beta_1^t) m / (sqrt(v) + epsilon)
// corrected_epsilon (TF.js): w -= learning_rate m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + epsilon)
// weight_decay (AdamW): w -= learning_rate weight_decay w, before all else.
struct AdamUpdate {
  double learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7, weight_decay = 0;
  std::int64_t step = 1;
  bool corrected_epsilon = false;
};
PLIMSOLL_API void update_adam(const AdamUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                              const TensorView& m, const TensorView& v) noexcept;

// m += (g - m) (1 - beta_1);  u = max(beta_2 u, |g|);  w -= learning_rate / (1 - beta_1^t) m / (u + epsilon)
struct AdamaxUpdate {
  double learning_rate = 0.001, beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-7;
  std::int64_t step = 1;
};
PLIMSOLL_API void update_adamax(const AdamaxUpdate& options, const ConstTensorView& gradient,
                                const TensorView& parameter, const TensorView& m, const TensorView& u) noexcept;

// Over all elements, in f64.
PLIMSOLL_API double sum_of_squares(const ConstTensorView& x) noexcept;

}  // namespace plimsoll::internal
