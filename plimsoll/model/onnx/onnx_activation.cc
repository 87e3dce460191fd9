// Activations.
#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll::internal {
namespace {

using Function = Tensor (*)(const OnnxNode&, const Tensor&);

// Of each element by itself, in whatever order they are.
template <Function kFunction>
void each(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  node.give(OnnxValue(kFunction(node, x.held()), x.order()));
}

Tensor relu_of(const OnnxNode&, const Tensor& x) { return relu(x); }
Tensor sigmoid_of(const OnnxNode&, const Tensor& x) { return sigmoid(x); }
Tensor tanh_of(const OnnxNode&, const Tensor& x) { return tanh(x); }
Tensor softplus_of(const OnnxNode&, const Tensor& x) { return softplus(x); }
Tensor softsign_of(const OnnxNode&, const Tensor& x) { return softsign(x); }
Tensor mish_of(const OnnxNode&, const Tensor& x) { return x * tanh(softplus(x)); }

Tensor elu_of(const OnnxNode& node, const Tensor& x) {
  const double alpha = node.real("alpha", 1);
  return alpha == 1 ? elu(x) : maximum(x, 0) + alpha * expm1(minimum(x, 0));
}

Tensor celu_of(const OnnxNode& node, const Tensor& x) {
  const double alpha = node.real("alpha", 1);
  return maximum(x, 0) + minimum(alpha * expm1(x / alpha), 0);
}

Tensor selu_of(const OnnxNode& node, const Tensor& x) {
  const double alpha = node.real("alpha", node.version() < 6 ? 1.6732 : 1.67326319217681884765625);
  const double gamma = node.real("gamma", node.version() < 6 ? 1.0507 : 1.05070102214813232421875);
  return gamma * (maximum(x, 0) + alpha * expm1(minimum(x, 0)));
}

Tensor gelu_of(const OnnxNode& node, const Tensor& x) { return gelu(x, node.text("approximate", "none") == "tanh"); }
Tensor leaky_relu_of(const OnnxNode& node, const Tensor& x) { return leaky_relu(x, node.real("alpha", 0.01)); }

Tensor hard_sigmoid_of(const OnnxNode& node, const Tensor& x) {
  return minimum(maximum(x * node.real("alpha", 0.2) + node.real("beta", 0.5), 0), 1);
}

Tensor hard_swish_of(const OnnxNode&, const Tensor& x) { return x * minimum(maximum(x * (1.0 / 6) + 0.5, 0), 1); }

Tensor swish_of(const OnnxNode& node, const Tensor& x) {
  const double alpha = node.real("alpha", 1);
  return alpha == 1 ? swish(x) : x * sigmoid(x * alpha);
}

void swish_times(OnnxNode& node) {
  const OnnxPair pair = aligned(node);
  node.give(OnnxValue(swish_of(node, pair.a) * pair.b, pair.order));
}

Tensor thresholded_of(const OnnxNode& node, const Tensor& x) {
  return where(x > node.real("alpha", 1), x, zeros_like(x));
}

Tensor shrink_of(const OnnxNode& node, const Tensor& x) {
  const double bias = node.real("bias", 0), edge = node.real("lambd", 0.5);
  if (is_integer(x.dtype())) {
    const Tensor wide = x.cast(f64), zero = zeros_like(wide);
    return where(wide < -edge, wide + bias, where(wide > edge, wide - bias, zero)).cast(x.dtype());
  }
  return where(x < -edge, x + bias, where(x > edge, x - bias, zeros_like(x)));
}

void prelu(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const std::size_t rank = x.shape().rank();
  OnnxValue slope = node.value(1);
  if (node.version() < 7 && slope.shape().rank() == 1 && slope.shape()[0] != 1 && rank > 2)
    slope = OnnxValue(per_channel(slope.plain(), rank));
  const Tensor held = x.held(), by = in_order(slope, rank, x.order());
  if (is_integer(held.dtype())) return node.unsupported("integers");
  node.give(OnnxValue(maximum(held, 0) + minimum(held, 0) * by, x.order()));
}

// Before version 13 the axes from `axis` on are one.
template <Tensor (*kFunction)(const Tensor&, std::int64_t)>
void of_rows(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", 1, x.rank());
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < axis; ++i) rows *= x.shape()[i];
  std::int64_t columns = 1;
  for (std::size_t i = axis; i < x.rank(); ++i) columns *= x.shape()[i];
  node.give(kFunction(x.reshape({rows, columns}), 1).reshape(x.shape()));
}

template <Tensor (*kFunction)(const Tensor&, std::int64_t)>
void of_axis(OnnxNode& node) {
  const Tensor& x = node.in(0);
  node.give(kFunction(x, static_cast<std::int64_t>(node.axis("axis", -1, x.rank()))));
}

Tensor hardmax(const Tensor& x, std::int64_t axis) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  const Tensor hot = one_hot(x.argmax(axis), size, x.dtype());  // A new last axis.
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.rank()) - 1; ++i) {
    if (i == axis) order.push_back(static_cast<std::int64_t>(x.rank()) - 1);
    order.push_back(i);
  }
  if (order.size() < x.rank()) order.push_back(static_cast<std::int64_t>(x.rank()) - 1);
  return transpose(hot, order);
}

Tensor softmax_of(const Tensor& x, std::int64_t axis) { return softmax(x, axis); }
Tensor log_softmax_of(const Tensor& x, std::int64_t axis) { return log_softmax(x, axis); }

// In a prediction, nothing is dropped, unless the node says that it trains.
void dropout_of(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const bool trains = node.version() >= 12 && node.has(2) && node.integer_in(2) != 0;
  const double rate = node.version() < 12 ? node.real("ratio", 0.5) : node.has(1) ? node.real_in(1) : 0.5;
  if (trains && rate > 0) node.unsupported("training_mode: its result is random");
  node.give(x);
  if (node.wants(1))
    node.give(1, OnnxValue(full(x.shape(), node.version() < 10 ? Number(1) : Number(true),
                                node.version() < 10 ? x.held().dtype() : boolean)));
}

constexpr OnnxOperator kActivationRows[] = {
    {"Celu", 12, kNewest, each<celu_of>},
    {"Dropout", 1, 11, dropout_of},
    {"Dropout", 12, kNewest, dropout_of, kOperand1 | kOperand2},
    {"Elu", 1, kNewest, each<elu_of>},
    {"Gelu", 20, kNewest, each<gelu_of>},
    {"HardSigmoid", 1, kNewest, each<hard_sigmoid_of>},
    {"HardSwish", 14, kNewest, each<hard_swish_of>},
    {"Hardmax", 1, 12, of_rows<hardmax>},
    {"Hardmax", 13, kNewest, of_axis<hardmax>},
    {"LeakyRelu", 1, kNewest, each<leaky_relu_of>},
    {"LogSoftmax", 1, 12, of_rows<log_softmax_of>},
    {"LogSoftmax", 13, kNewest, of_axis<log_softmax_of>},
    {"Mish", 18, kNewest, each<mish_of>},
    {"PRelu", 1, kNewest, prelu},
    {"Relu", 1, kNewest, each<relu_of>},
    {"Selu", 1, kNewest, each<selu_of>},
    {"Shrink", 9, kNewest, each<shrink_of>},
    {"Sigmoid", 1, kNewest, each<sigmoid_of>},
    {"Softmax", 1, 12, of_rows<softmax_of>},
    {"Softmax", 13, kNewest, of_axis<softmax_of>},
    {"Softplus", 1, kNewest, each<softplus_of>},
    {"Softsign", 1, kNewest, each<softsign_of>},
    {"SwiGLU", 28, kNewest, swish_times},
    {"Swish", 24, kNewest, each<swish_of>},
    {"Tanh", 1, kNewest, each<tanh_of>},
    {"ThresholdedRelu", 10, kNewest, each<thresholded_of>},
};

}  // namespace

OnnxOperators onnx_activation_operators() { return kActivationRows; }

}  // namespace plimsoll::internal
