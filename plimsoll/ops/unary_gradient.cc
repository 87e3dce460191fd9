// Gradients of the unary operations, from the input or the output, whichever the formula reads.
#include <numbers>

#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll {
namespace {

enum class Reads { kNothing, kInput, kOutput };

Reads reads(UnaryOp op) {
  switch (op) {
    case UnaryOp::negative:
      return Reads::kNothing;
    case UnaryOp::relu:
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
    case UnaryOp::reciprocal:
    case UnaryOp::tan:
    case UnaryOp::exp:
    case UnaryOp::expm1:
    case UnaryOp::tanh:
    case UnaryOp::sigmoid:
    case UnaryOp::hard_sigmoid:
    case UnaryOp::elu:
    case UnaryOp::selu:
      return Reads::kOutput;
    default:
      return Reads::kInput;
  }
}

constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

Tensor slope(BinaryOp op, const Tensor& y, Tensor g) {
  const Tensor* const inputs[] = {&y, &g};
  return execute_over(Binary(op), std::move(g), inputs);
}

Tensor from_output(UnaryOp op, const Tensor& y, Tensor g) {
  switch (op) {
    case UnaryOp::relu:
      return slope(BinaryOp::relu_grad, y, std::move(g));
    case UnaryOp::sqrt:
      return std::move(g) * 0.5 / y;
    case UnaryOp::rsqrt:
      return std::move(g) * -0.5 * (y * y * y);
    case UnaryOp::reciprocal:
      return -(std::move(g) * y * y);
    case UnaryOp::tan:
      return std::move(g) * (1 + y * y);
    case UnaryOp::exp:
      return std::move(g) * y;
    case UnaryOp::expm1:
      return std::move(g) * (y + 1);
    case UnaryOp::tanh:
      return slope(BinaryOp::tanh_grad, y, std::move(g));
    case UnaryOp::sigmoid:
      return slope(BinaryOp::sigmoid_grad, y, std::move(g));
    case UnaryOp::hard_sigmoid:
      return where((y > 0) && (y < 1), g * 0.2, zeros_like(g));
    case UnaryOp::elu:
      return where(y < 0, g * (y + 1), g);
    default:  // selu
      return where(y < 0, g * (y + kSeluScale * kSeluAlpha), g * kSeluScale);
  }
}

Tensor from_input(UnaryOp op, const Tensor& x, const Tensor& g) {
  switch (op) {
    case UnaryOp::abs:
      return g * sign(x);
    case UnaryOp::square:
      return g * x * 2;
    case UnaryOp::relu6:
      return where((x > 0) && (x < 6), g, zeros_like(g));
    case UnaryOp::softsign:
      return g / square(abs(x) + 1);
    case UnaryOp::asin:
      return g * rsqrt(1 - x * x);
    case UnaryOp::acos:
      return -(g * rsqrt(1 - x * x));
    case UnaryOp::atan:
      return g / (1 + x * x);
    case UnaryOp::sinh:
      return g * cosh(x);
    case UnaryOp::cosh:
      return g * sinh(x);
    case UnaryOp::log:
      return g / x;
    case UnaryOp::log1p:
      return g / (x + 1);
    case UnaryOp::sin:
      return g * cos(x);
    case UnaryOp::cos:
      return -(g * sin(x));
    case UnaryOp::erf:
      return g * exp(-(x * x)) * (2 * std::numbers::inv_sqrtpi);
    case UnaryOp::softplus:
      return g * sigmoid(x);
    case UnaryOp::gelu: {
      const Tensor density = exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
      return g * (erf(x * (1 / std::numbers::sqrt2)) * 0.5 + 0.5 + x * density);
    }
    default: {  // swish
      const Tensor s = sigmoid(x);
      return g * s * (1 + x * (1 - s));
    }
  }
}

}  // namespace

OpFacts Unary::facts() const noexcept {
  const bool flat = op_ == UnaryOp::sign || op_ == UnaryOp::floor || op_ == UnaryOp::ceil || op_ == UnaryOp::round;
  return {.has_gradient = !flat && result_dtype(op_, f32) == f32, .overwrites = slot(0)};
}

SavedSlots Unary::saved(SlotMask) const {
  switch (reads(op_)) {
    case Reads::kInput:
      return {.inputs = slot(0)};
    case Reads::kOutput:
      return {.outputs = slot(0)};
    default:
      return {};
  }
}

void Unary::gradient(GradientContext& c) const {
  switch (reads(op_)) {
    case Reads::kInput:
      return c.give(0, from_input(op_, c.input(0), c.grad()));
    case Reads::kOutput:
      return c.give(0, from_output(op_, c.output(0), c.take_grad()));
    default:
      return c.give(0, -c.grad());
  }
}

}  // namespace plimsoll
