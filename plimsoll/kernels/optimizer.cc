#include "plimsoll/kernels/optimizer.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/optimizer_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;   // Elements per chunk.
constexpr std::int64_t kMaxPieces = 64;  // Into which one sum is cut.

int type_index(DType dtype) noexcept {
  PLIMSOLL_CHECK(dtype == f32 || dtype == f64);
  return dtype == f32 ? 0 : 1;
}

void* advanced(void* data, std::size_t bytes) noexcept {
  return data ? static_cast<std::byte*>(data) + bytes : nullptr;
}

// Slots without an address stay null.
void update(UpdateRule rule, const double* factors, const ConstTensorView& gradient, const TensorView& parameter,
            const TensorView& first = {}, const TensorView& second = {}, const TensorView& third = {}) noexcept {
  const UpdateLoop loop = optimizer_loops().updates[rule][type_index(parameter.dtype())];
  PLIMSOLL_CHECK(gradient.dtype() == parameter.dtype() && gradient.size() == parameter.size());
  UpdateArrays whole = {parameter.bytes(), gradient.bytes(), {}};
  const TensorView* slots[] = {&first, &second, &third};
  for (int s = 0; s < 3; ++s) {
    if (!slots[s]->base()) continue;
    PLIMSOLL_CHECK(slots[s]->dtype() == parameter.dtype() && slots[s]->size() == parameter.size());
    whole.slots[s] = slots[s]->bytes();
  }
  const std::size_t size = size_of(parameter.dtype());
  parallel_for(static_cast<std::int64_t>(parameter.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
    const std::size_t skip = static_cast<std::size_t>(begin) * size;
    const UpdateArrays part = {
        advanced(whole.parameter, skip),
        static_cast<const std::byte*>(whole.gradient) + skip,
        {advanced(whole.slots[0], skip), advanced(whole.slots[1], skip), advanced(whole.slots[2], skip)}};
    loop(part, factors, end - begin);
  });
}

}  // namespace

double sum_of_squares(const ConstTensorView& x) noexcept {
  const auto loop = optimizer_loops().sum_of_squares[type_index(x.dtype())];
  const auto n = static_cast<std::int64_t>(x.size());
  const std::int64_t piece = std::max(kGrain, divide_up(n, kMaxPieces)), pieces = divide_up(n, piece);
  double partial[kMaxPieces] = {};
  parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p)
      partial[p] =
          loop(x.bytes() + static_cast<std::size_t>(p * piece) * size_of(x.dtype()), std::min(piece, n - p * piece));
  });
  double total = 0;
  for (std::int64_t p = 0; p < pieces; ++p) total += partial[p];
  return total;
}

void update_sgd(double learning_rate, const ConstTensorView& gradient, const TensorView& parameter) noexcept {
  const double factors[] = {-learning_rate};
  update(kUpdateSgd, factors, gradient, parameter);
}

void update_momentum(const MomentumUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                     const TensorView& velocity) noexcept {
  const double rate = options.learning_rate, momentum = options.momentum;
  const bool outside = options.rate_outside_velocity, nesterov = options.nesterov;
  const double take = outside ? 1 : -rate;
  const double of_velocity = (outside ? -rate : 1) * (nesterov ? momentum : 1);
  const double factors[] = {momentum, take, of_velocity, nesterov ? -rate : 0};
  update(kUpdateMomentum, factors, gradient, parameter, velocity);
}

void update_rmsprop(const RmspropUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                    const RmspropSlots& slots) noexcept {
  const double factors[] = {options.rho, 1 - options.rho, options.learning_rate, options.epsilon, options.momentum};
  const bool centered = slots.mean_gradient.base() != nullptr, momentum = slots.momentum.base() != nullptr;
  const UpdateRule rule = centered ? (momentum ? kUpdateRmspropCenteredMomentum : kUpdateRmspropCentered)
                                   : (momentum ? kUpdateRmspropMomentum : kUpdateRmsprop);
  update(rule, factors, gradient, parameter, slots.mean_square, slots.mean_gradient, slots.momentum);
}

void update_adagrad(const AdagradUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                    const TensorView& sum_of_squares) noexcept {
  const double factors[] = {options.learning_rate, options.epsilon};
  update(kUpdateAdagrad, factors, gradient, parameter, sum_of_squares);
}

void update_adadelta(const AdadeltaUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                     const TensorView& mean_square, const TensorView& mean_square_update) noexcept {
  const double factors[] = {options.rho, 1 - options.rho, options.learning_rate, options.epsilon};
  const UpdateRule rule = options.previous_mean_square ? kUpdateAdadeltaPrevious : kUpdateAdadelta;
  update(rule, factors, gradient, parameter, mean_square, mean_square_update);
}

void update_adam(const AdamUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                 const TensorView& m, const TensorView& v) noexcept {
  const auto step = static_cast<double>(options.step);
  const double root = std::sqrt(1 - std::pow(options.beta_2, step));
  const double rate = options.learning_rate * root / (1 - std::pow(options.beta_1, step));
  // sqrt(v / c) + epsilon = (sqrt(v) + sqrt(c) epsilon) / sqrt(c)
  const double epsilon = options.corrected_epsilon ? options.epsilon * root : options.epsilon;
  const double factors[] = {1 - options.beta_1, 1 - options.beta_2, rate, epsilon,
                            1 - options.learning_rate * options.weight_decay};
  update(kUpdateAdam, factors, gradient, parameter, m, v);
}

void update_adamax(const AdamaxUpdate& options, const ConstTensorView& gradient, const TensorView& parameter,
                   const TensorView& m, const TensorView& u) noexcept {
  const double rate = options.learning_rate / (1 - std::pow(options.beta_1, static_cast<double>(options.step)));
  const double factors[] = {1 - options.beta_1, options.beta_2, rate, options.epsilon};
  update(kUpdateAdamax, factors, gradient, parameter, m, u);
}

}  // namespace plimsoll::internal
