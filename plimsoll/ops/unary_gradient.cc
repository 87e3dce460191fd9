// Gradients of the unary operations: the rows of elementwise_ops.inc.
#include <numbers>
#include <type_traits>

#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll::internal {
namespace {

enum class Reads : unsigned char { kNoGradient, kNothing, kInput, kOutput };
using enum Reads;

// Stands for an operand that the row does not name: it has nothing to read.
struct Unread {};
template <bool kIsRead>
using Operand = std::conditional_t<kIsRead, const Tensor&, Unread>;

// b = kernel(a, b): a gradient's kernel, in the gradient's memory when nobody else holds it.
Tensor through(BinaryOp kernel, const Tensor& a, Tensor g) {
  const Tensor* const inputs[] = {&a, &g};
  return execute_over(Binary(kernel), std::move(g), inputs);
}

#define PLIMSOLL_UNARY_OP(name, reads, gradient)                                                         \
  Tensor gradient_of_##name([[maybe_unused]] Operand<(reads) == kInput> x,                               \
                            [[maybe_unused]] Operand<(reads) == kOutput> y, [[maybe_unused]] Tensor g) { \
    return gradient;                                                                                     \
  }
#include "plimsoll/ops/elementwise_ops.inc"

constexpr Reads reads_of(UnaryOp op) {
  switch (op) {
#define PLIMSOLL_UNARY_OP(name, reads, gradient) \
  case UnaryOp::name:                            \
    return reads;
#include "plimsoll/ops/elementwise_ops.inc"
    case UnaryOp::kCount:
      break;
  }
  return kNoGradient;
}

template <UnaryOp kOp, class Gradient>
Tensor call(Gradient gradient, GradientContext& c) {
  if constexpr (reads_of(kOp) == kInput)
    return gradient(c.input(0), Unread(), c.take_grad());
  else if constexpr (reads_of(kOp) == kOutput)
    return gradient(Unread(), c.output(0), c.take_grad());
  else
    return gradient(Unread(), Unread(), c.take_grad());
}

}  // namespace

OpFacts Unary::facts() const noexcept { return {.has_gradient = reads_of(op_) != kNoGradient, .overwrites = slot(0)}; }

SavedSlots Unary::saved(SlotMask) const {
  const Reads reads = reads_of(op_);
  return {.inputs = reads == kInput ? slot(0) : 0, .outputs = reads == kOutput ? slot(0) : 0};
}

void Unary::gradient(GradientContext& c) const {
  switch (op_) {
#define PLIMSOLL_UNARY_OP(name, reads, gradient) \
  case UnaryOp::name:                            \
    return c.give(0, call<UnaryOp::name>(gradient_of_##name, c));
#include "plimsoll/ops/elementwise_ops.inc"
    case UnaryOp::kCount:
      break;
  }
}

}  // namespace plimsoll::internal
