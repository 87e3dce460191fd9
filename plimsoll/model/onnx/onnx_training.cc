// Steps of optimizers, of the domain ai.onnx.preview.training.
#include <cmath>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll::internal {
namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

// Operands are the rate, the step, then parameters, gradients and `kinds` - 2 states, each for all parameters.
std::size_t parameters_of(const OnnxNode& node, std::size_t kinds) {
  if (node.num_inputs() < 2 + kinds || (node.num_inputs() - 2) % kinds != 0) node.invalid("operands are missing");
  return (node.num_inputs() - 2) / kinds;
}

void adagrad(OnnxNode& node) {
  const std::size_t n = parameters_of(node, 3);
  const Tensor &rate = node.in(0), step = node.in(1).cast(rate.dtype());
  const Tensor decayed = rate / (1 + step * node.real("decay_factor", 0));
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor x = node.in(2 + i), g = node.in(2 + n + i) + x * node.real("norm_coefficient", 0);
    const Tensor h = node.in(2 + 2 * n + i) + g * g;
    node.give(i, x - decayed * g / (sqrt(h) + node.real("epsilon", 1e-6)));
    node.give(n + i, h);
  }
}

void momentum(OnnxNode& node) {
  const std::size_t n = parameters_of(node, 3);
  const Tensor& rate = node.in(0);
  const bool first = node.integer_in(1) == 0, nesterov = node.text("mode", "standard") == "nesterov";
  const double alpha = node.real("alpha", 0), beta = first ? 1 : node.real("beta", 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor x = node.in(2 + i), g = node.in(2 + n + i) + x * node.real("norm_coefficient", 0);
    const Tensor v = node.in(2 + 2 * n + i) * alpha + g * beta;
    node.give(i, x - rate * (nesterov ? g + v * alpha : v));
    node.give(n + i, v);
  }
}

void adam(OnnxNode& node) {
  const std::size_t n = parameters_of(node, 4);
  if (n > 1) node.unsupported("several parameters");
  const Tensor& rate = node.in(0);
  const double alpha = node.real("alpha", 0.9), beta = node.real("beta", 0.999), epsilon = node.real("epsilon", 1e-6);
  const auto step = static_cast<double>(node.integer_in(1));
  const Tensor adjusted = step > 0 ? rate * (std::sqrt(1 - std::pow(beta, step)) / (1 - std::pow(alpha, step))) : rate;
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor x = node.in(2 + i), g = node.in(2 + n + i) + x * node.real("norm_coefficient", 0);
    const Tensor v = node.in(2 + 2 * n + i) * alpha + g * (1 - alpha);
    const Tensor h = node.in(2 + 3 * n + i) * beta + g * g * (1 - beta);
    node.give(i, (x - adjusted * v / (sqrt(h) + epsilon)) * (1 - node.real("norm_coefficient_post", 0)));
    node.give(n + i, v);
    node.give(2 * n + i, h);
  }
}

constexpr OnnxOperator kTrainingRows[] = {
    {"Adagrad", 1, kNewest, adagrad, 0, 0, kDomain},
    {"Adam", 1, kNewest, adam, kOperand1, 0, kDomain},
    {"Momentum", 1, kNewest, momentum, kOperand1, 0, kDomain},
};

}  // namespace

OnnxOperators onnx_training_operators() { return kTrainingRows; }

}  // namespace plimsoll::internal
