// Gradients of the binary operations. Each formula is written once, for tensors and numbers alike.
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll {
namespace {

// Which operands a formula below reads.
struct Reads {
  bool a = false, b = false, y = false;
};

Reads reads_for_a(BinaryOp op) {
  switch (op) {
    case BinaryOp::multiply:
    case BinaryOp::divide:
      return {.b = true};
    case BinaryOp::power:
    case BinaryOp::maximum:
    case BinaryOp::minimum:
    case BinaryOp::squared_difference:
    case BinaryOp::leaky_relu:
    case BinaryOp::tanh_grad:
    case BinaryOp::sigmoid_grad:
      return {.a = true, .b = true};
    default:
      return {};
  }
}

Reads reads_for_b(BinaryOp op) {
  switch (op) {
    case BinaryOp::multiply:
    case BinaryOp::relu_grad:
    case BinaryOp::tanh_grad:
    case BinaryOp::sigmoid_grad:
      return {.a = true};
    case BinaryOp::divide:
      return {.b = true, .y = true};
    case BinaryOp::modulo:
    case BinaryOp::maximum:
    case BinaryOp::minimum:
    case BinaryOp::squared_difference:
    case BinaryOp::leaky_relu:
      return {.a = true, .b = true};
    case BinaryOp::power:
      return {.a = true, .b = true, .y = true};
    default:
      return {};
  }
}

Tensor less_one(const Tensor& x) { return x - 1; }
Number less_one(const Number& x) { return x.as_double() - 1; }
Tensor mask(const Tensor& condition, DType dtype) { return condition.cast(dtype); }

// The gradient of a, before it is summed to a's shape. `B` is Tensor or Number. An empty handle: it is zero.
template <class B>
Tensor gradient_of_a(BinaryOp op, const Tensor& a, const B& b, const Tensor& g) {
  switch (op) {
    case BinaryOp::multiply:
      return g * b;
    case BinaryOp::divide:
      return g / b;
    case BinaryOp::power:
      return g * b * power(a, less_one(b));
    case BinaryOp::maximum:
      return g * mask(a >= b, g.dtype());
    case BinaryOp::minimum:
      return g * mask(a <= b, g.dtype());
    case BinaryOp::squared_difference:
      return g * (a - b) * 2;
    case BinaryOp::leaky_relu:
      return where(a > 0, g, g * b);
    case BinaryOp::tanh_grad:  // b (1 - a^2)
      return g * b * a * -2;
    case BinaryOp::sigmoid_grad:  // b (a - a^2)
      return g * b * (1 - 2 * a);
    case BinaryOp::relu_grad:
    case BinaryOp::floor_divide:
      return {};
    default:  // add, subtract, modulo
      return g;
  }
}

template <class A>
Tensor gradient_of_b(BinaryOp op, const A& a, const Tensor& b, const Tensor& y, const Tensor& g) {
  switch (op) {
    case BinaryOp::subtract:
      return -g;
    case BinaryOp::multiply:
      return g * a;
    case BinaryOp::divide:
      return -(g * y / b);
    case BinaryOp::modulo:
      return -(g * floor(a / b));
    case BinaryOp::power: {
      const Tensor base = a + zeros_like(b);  // Broadcast, also when it is a number.
      const Tensor positive = base > 0;
      return where(positive, g * y * log(where(positive, base, ones_like(base))), zeros_like(base));
    }
    case BinaryOp::maximum:
      return g * mask(a < b, g.dtype());
    case BinaryOp::minimum:
      return g * mask(a > b, g.dtype());
    case BinaryOp::squared_difference:
      return g * (a - b) * -2;
    case BinaryOp::leaky_relu:
      return g * minimum(a, zeros_like(b));
    case BinaryOp::relu_grad:
    case BinaryOp::tanh_grad:
    case BinaryOp::sigmoid_grad:
      if constexpr (std::is_same_v<A, Tensor>) return execute(Binary(op), a, g);
      return {};
    case BinaryOp::floor_divide:
      return {};
    default:
      return g;
  }
}

SavedSlots saved_slots(const Reads& reads, std::size_t a, std::size_t b) {
  SavedSlots saved;
  if (reads.a && a != SIZE_MAX) saved.inputs |= slot(a);
  if (reads.b && b != SIZE_MAX) saved.inputs |= slot(b);
  if (reads.y) saved.outputs |= slot(0);
  return saved;
}

const Tensor kNone;

}  // namespace

SavedSlots Binary::saved(SlotMask wanted) const {
  const Reads first = wanted & slot(0) ? reads_for_a(op_) : Reads{};
  const Reads second = wanted & slot(1) ? reads_for_b(op_) : Reads{};
  return saved_slots({first.a || second.a, first.b || second.b, first.y || second.y}, 0, 1);
}

void Binary::gradient(GradientContext& c) const {
  const Tensor& g = c.grad();
  const auto operand = [&](bool read, std::size_t input) -> const Tensor& { return read ? c.input(input) : kNone; };
  if (c.wants(0)) {
    const Reads reads = reads_for_a(op_);
    const Tensor gradient = gradient_of_a(op_, operand(reads.a, 0), operand(reads.b, 1), g);
    if (!gradient.is_empty_handle()) c.give(0, sum_to(gradient, c.input_shape(0)));
  }
  if (c.wants(1)) {
    const Reads reads = reads_for_b(op_);
    const Tensor gradient =
        gradient_of_b(op_, operand(reads.a, 0), operand(reads.b, 1), reads.y ? c.output(0) : kNone, g);
    if (!gradient.is_empty_handle()) c.give(1, sum_to(gradient, c.input_shape(1)));
  }
}

SavedSlots BinaryWithNumber::saved(SlotMask) const {
  return number_first_ ? saved_slots(reads_for_b(op_), SIZE_MAX, 0) : saved_slots(reads_for_a(op_), 0, SIZE_MAX);
}

void BinaryWithNumber::gradient(GradientContext& c) const {
  const Reads reads = number_first_ ? reads_for_b(op_) : reads_for_a(op_);
  const bool needs_x = number_first_ ? reads.b : reads.a;
  const Tensor& x = needs_x ? c.input(0) : kNone;
  Tensor gradient = number_first_ ? gradient_of_b(op_, number_, x, reads.y ? c.output(0) : kNone, c.grad())
                                  : gradient_of_a(op_, x, number_, c.grad());
  if (!gradient.is_empty_handle()) c.give(0, std::move(gradient));
}

}  // namespace plimsoll
