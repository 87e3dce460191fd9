// Gradients of the binary operations: the rows of elementwise_ops.inc. Each formula is written once, for both tensors
// and numbers.
#include <numbers>
#include <type_traits>

#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll::internal {
namespace {

enum Reads : unsigned { kNothing = 0, kA = 1, kB = 2, kY = 4 };

// Stands for an operand that the row does not name: it has nothing to read.
struct Unread {};
template <bool kIsRead, class T>
using Operand = std::conditional_t<kIsRead, const T&, Unread>;

Tensor less_one(const Tensor& x) { return x - 1; }
Number less_one(const Number& x) { return x.as_double() - 1; }
Tensor squares(const Tensor& a, const Tensor& b) { return a * a + b * b; }
Tensor squares(const Tensor& a, const Number& b) { return a * a + b.as_double() * b.as_double(); }
Tensor squares(const Number& a, const Tensor& b) { return squares(b, a); }
Tensor mask(const Tensor& condition, const Tensor& like) { return condition.cast(like.dtype()); }

template <class A>
Tensor gradient_of_exponent(const A& a, const Tensor& b, const Tensor& y, const Tensor& g) {
  const Tensor base = a + zeros_like(b);  // Broadcasts, also when a is a number.
  const Tensor positive = base > 0;
  return where(positive, g * y * log(where(positive, base, ones_like(base))), zeros_like(base));
}

Tensor gradient_of_leaky_relu(const Tensor& x, const Tensor& slope, const Tensor& g) {
  return where(x > 0, g, g * slope);
}
Tensor gradient_of_leaky_relu(const Tensor& x, const Number& slope, const Tensor& g) {
  return execute(LeakyReluGradient(slope), x, g);
}

// Gradients are linear in the gradient of the result, which is never a number.
Tensor through(BinaryOp kernel, const Tensor& a, const Tensor& g) { return execute(Binary(kernel), a, g); }
Tensor through(BinaryOp, const Number&, const Tensor&) { return {}; }

// Second derivatives.
Tensor sigmoid_slope(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * (1 - s);
}
Tensor softsign_curvature(const Tensor& x) { return sign(x) * -2 / power(abs(x) + 1, 3); }
Tensor swish_curvature(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * (1 - s) * (2 + x * (1 - 2 * s));
}
Tensor gelu_curvature(const Tensor& x) {
  const Tensor square = x * x;
  return exp(square * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2) * (2 - square);
}
// For x sigmoid(v) with v = scale (x + cubic x^3).
Tensor gelu_tanh_curvature(const Tensor& x) {
  constexpr double kScale = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCubic = 0.044715;
  const Tensor s = sigmoid((x + x * x * x * kCubic) * kScale), slope = s * (1 - s);
  const Tensor dv = (1 + x * x * (3 * kCubic)) * kScale;
  return slope * (2 * dv + x * ((1 - 2 * s) * dv * dv + x * (6 * kCubic * kScale)));
}

// The gradients before they are summed to the operand's shape. `A` and `B` are Tensor or Number.
#define PLIMSOLL_INNER_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b)                           \
  struct GradientOf_##name {                                                                                      \
    static constexpr unsigned kForA = (reads_for_a), kForB = (reads_for_b);                                       \
    template <class B>                                                                                            \
    static Tensor of_a([[maybe_unused]] Operand<(kForA & kA) != 0, Tensor> a,                                     \
                       [[maybe_unused]] Operand<(kForA & kB) != 0, B> b,                                          \
                       [[maybe_unused]] Operand<(kForA & kY) != 0, Tensor> y, [[maybe_unused]] const Tensor& g) { \
      return gradient_of_a;                                                                                       \
    }                                                                                                             \
    template <class A>                                                                                            \
    static Tensor of_b([[maybe_unused]] Operand<(kForB & kA) != 0, A> a,                                          \
                       [[maybe_unused]] Operand<(kForB & kB) != 0, Tensor> b,                                     \
                       [[maybe_unused]] Operand<(kForB & kY) != 0, Tensor> y, [[maybe_unused]] const Tensor& g) { \
      return gradient_of_b;                                                                                       \
    }                                                                                                             \
  };
#define PLIMSOLL_BINARY_OP PLIMSOLL_INNER_OP
#include "plimsoll/ops/elementwise_ops.inc"

// Calls f with the row of an operation.
template <class F>
void with_row(BinaryOp op, F f) {
  switch (op) {
#define PLIMSOLL_INNER_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b) \
  case BinaryOp::name:                                                                  \
    return f(GradientOf_##name());
#define PLIMSOLL_BINARY_OP PLIMSOLL_INNER_OP
#include "plimsoll/ops/elementwise_ops.inc"
    case BinaryOp::kCount:
      break;
  }
}

template <bool kIsRead, class Get>
decltype(auto) read_if(Get get) {
  if constexpr (kIsRead)
    return get();
  else
    return Unread();
}

// a() and b() are the operands, a tensor or a number; y() is the result.
template <class Row, class A, class B, class Y>
Tensor gradient_of_a(A a, B b, Y y, const Tensor& g) {
  return Row::template of_a<std::remove_cvref_t<decltype(b())>>(
      read_if<(Row::kForA & kA) != 0>(a), read_if<(Row::kForA & kB) != 0>(b), read_if<(Row::kForA & kY) != 0>(y), g);
}
template <class Row, class A, class B, class Y>
Tensor gradient_of_b(A a, B b, Y y, const Tensor& g) {
  return Row::template of_b<std::remove_cvref_t<decltype(a())>>(
      read_if<(Row::kForB & kA) != 0>(a), read_if<(Row::kForB & kB) != 0>(b), read_if<(Row::kForB & kY) != 0>(y), g);
}

SlotMask slot_if(bool is_read, std::size_t index) { return is_read ? slot(index) : 0; }

void give(GradientContext& c, std::size_t input, const Tensor& gradient) {
  if (!gradient.is_empty_handle()) c.give(input, sum_to(gradient, c.input_shape(input)));
}

}  // namespace

SavedSlots Binary::saved(SlotMask wanted) const {
  SavedSlots saved;
  with_row(op_, [&]<class Row>(Row) {
    const unsigned reads = (wanted & slot(0) ? Row::kForA : 0u) | (wanted & slot(1) ? Row::kForB : 0u);
    saved = {.inputs = slot_if(reads & kA, 0) | slot_if(reads & kB, 1), .outputs = slot_if(reads & kY, 0)};
  });
  return saved;
}

void Binary::gradient(GradientContext& c) const {
  const auto a = [&]() -> const Tensor& { return c.input(0); };
  const auto b = [&]() -> const Tensor& { return c.input(1); };
  const auto y = [&]() -> const Tensor& { return c.output(0); };
  with_row(op_, [&]<class Row>(Row) {
    if (c.wants(0)) give(c, 0, gradient_of_a<Row>(a, b, y, c.grad()));
    if (c.wants(1)) give(c, 1, gradient_of_b<Row>(a, b, y, c.grad()));
  });
}

SavedSlots BinaryWithNumber::saved(SlotMask) const {
  SavedSlots saved;
  with_row(op_, [&]<class Row>(Row) {
    const unsigned reads = number_first_ ? Row::kForB : Row::kForA;
    saved = {.inputs = slot_if(reads & (number_first_ ? kB : kA), 0), .outputs = slot_if(reads & kY, 0)};
  });
  return saved;
}

void BinaryWithNumber::gradient(GradientContext& c) const {
  const auto x = [&]() -> const Tensor& { return c.input(0); };
  const auto number = [&]() -> const Number& { return number_; };
  const auto y = [&]() -> const Tensor& { return c.output(0); };
  with_row(op_, [&]<class Row>(Row) {
    give(c, 0, number_first_ ? gradient_of_b<Row>(number, x, y, c.grad()) : gradient_of_a<Row>(x, number, y, c.grad()));
  });
}

}  // namespace plimsoll::internal
