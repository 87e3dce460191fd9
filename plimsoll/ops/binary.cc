#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll {

void Binary::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  if (!is_supported(op_, in.dtype(0))) [[unlikely]]
    refuse_dtype(*this, in.dtype(0));
  const DType dtype = result_dtype(op_, in.dtype(0));
  if (in.shape(0) == in.shape(1))
    out.add(in.shape(0), dtype);
  else
    out.add(broadcast_shapes(in.shape(0), in.shape(1), name()), dtype);
}

void Binary::run(const OpRun& run) const noexcept { binary(op_, run.in[0], run.in[1], run.out[0]); }

bool Binary::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  return launch_binary(queue, op_name(op_), run.in[0], run.in[1], run.out[0]);
}

OpFacts Binary::facts() const noexcept {
  return {.has_gradient = result_dtype(op_, f32) == f32, .overwrites = slot(0) | slot(1)};
}

void BinaryWithNumber::infer(const Specs& in, SpecList& out) const {
  if (!is_supported(op_, in.dtype(0))) [[unlikely]]
    refuse_dtype(*this, in.dtype(0));
  out.add(in.shape(0), result_dtype(op_, in.dtype(0)));
}

void BinaryWithNumber::run(const OpRun& run) const noexcept {
  const std::uint64_t bytes = number_.to(run.in[0].dtype());
  const ConstTensorView number(&bytes, 0, run.in[0].dtype(), Shape::scalar());
  if (number_first_)
    binary(op_, number, run.in[0], run.out[0]);
  else
    binary(op_, run.in[0], number, run.out[0]);
}

bool BinaryWithNumber::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  return launch_number(queue, op_name(op_), run.in[0], number_.as_double(), number_first_, run.out[0]);
}

void BinaryWithNumber::run_flat(DType dtype, const void* x, void* out, std::size_t size) const noexcept {
  const std::uint64_t bytes = number_.to(dtype);
  const FlatOperand number = {&bytes, true}, elements = {x};
  if (number_first_)
    binary(op_, dtype, number, elements, out, size);
  else
    binary(op_, dtype, elements, number, out, size);
}

OpFacts BinaryWithNumber::facts() const noexcept {
  return {.has_gradient = result_dtype(op_, f32) == f32, .overwrites = slot(0)};
}

namespace {

void run_pair(const Op& op, DType dtype, const void* a, const void* b, void* out, std::size_t size) noexcept {
  binary(static_cast<const Binary&>(op).op(), dtype, {a}, {b}, out, size);
}

void run_number(const Op& op, DType dtype, const void* x, const void*, void* out, std::size_t size) noexcept {
  static_cast<const BinaryWithNumber&>(op).run_flat(dtype, x, out, size);
}

Tensor pair(BinaryOp which, const Tensor& a, const Tensor& b) {
  const Binary op(which);
  if (is_supported(which, a.dtype())) [[likely]] {
    std::optional<Tensor> quick = execute_flat(op, a, &b, result_dtype(which, a.dtype()), run_pair);
    if (quick) [[likely]]
      return *std::move(quick);
  }
  return execute(op, a, b);
}

// The same when `over` is one of the operands.
Tensor pair_over(BinaryOp which, const Tensor& a, const Tensor& b, Tensor& over) {
  const Binary op(which);
  if (is_supported(which, a.dtype())) [[likely]] {
    std::optional<Tensor> quick = execute_flat(op, a, &b, result_dtype(which, a.dtype()), run_pair, &over);
    if (quick) [[likely]] {
      over = Tensor();
      return *std::move(quick);
    }
  }
  const Tensor* const inputs[] = {&a, &b};
  return execute_over(op, std::move(over), inputs);
}

// The operand whose size is the result's.
Tensor& larger(Tensor& a, Tensor& b) {
  const bool known = a.shape().is_known() && b.shape().is_known();
  return known && a.size() < b.size() ? b : a;
}

[[noreturn, gnu::cold]] void refuse_number(BinaryOp which, const Number& number, DType dtype) {
  throw InvalidArgument(fmt::format("{}: {} is not a value of {}; cast the tensor first, or give a number that is",
                                    op_name(which), number.as_double(), dtype_name(dtype)));
}

// `over`: x, or nullptr.
Tensor pair(BinaryOp which, const Tensor& x, const Number& number, bool number_first, Tensor* over = nullptr) {
  if (const DType dtype = x.dtype(); !is_floating(dtype) && !number.fits(dtype)) [[unlikely]]
    refuse_number(which, number, dtype);
  const BinaryWithNumber op(which, number, number_first);
  if (is_supported(which, x.dtype())) [[likely]] {
    std::optional<Tensor> quick = execute_flat(op, x, nullptr, result_dtype(which, x.dtype()), run_number, over);
    if (quick) [[likely]] {
      if (over) *over = Tensor();
      return *std::move(quick);
    }
  }
  const Tensor* const inputs[] = {&x};
  return over ? execute_over(op, std::move(*over), inputs) : execute(op, x);
}

}  // namespace

#define PLIMSOLL_BINARY_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b)      \
  Tensor name(const Tensor& a, const Tensor& b) { return pair(BinaryOp::name, a, b); }        \
  Tensor name(const Tensor& a, const Number& b) { return pair(BinaryOp::name, a, b, false); } \
  Tensor name(const Number& a, const Tensor& b) { return pair(BinaryOp::name, b, a, true); }
#include "plimsoll/ops/elementwise_ops.inc"

#define PLIMSOLL_TENSOR_OPERATOR(symbol, name)                                    \
  Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  Tensor operator symbol(const Tensor& a, const Number& b) { return name(a, b); } \
  Tensor operator symbol(const Number& a, const Tensor& b) { return name(a, b); }
PLIMSOLL_TENSOR_OPERATOR(+, add)
PLIMSOLL_TENSOR_OPERATOR(-, subtract)
PLIMSOLL_TENSOR_OPERATOR(*, multiply)
PLIMSOLL_TENSOR_OPERATOR(/, divide)
PLIMSOLL_TENSOR_OPERATOR(%, modulo)
PLIMSOLL_TENSOR_OPERATOR(==, equal)
PLIMSOLL_TENSOR_OPERATOR(!=, not_equal)
PLIMSOLL_TENSOR_OPERATOR(<, less)
PLIMSOLL_TENSOR_OPERATOR(<=, less_equal)
PLIMSOLL_TENSOR_OPERATOR(>, greater)
PLIMSOLL_TENSOR_OPERATOR(>=, greater_equal)
PLIMSOLL_TENSOR_OPERATOR(&&, logical_and)
PLIMSOLL_TENSOR_OPERATOR(||, logical_or)
#undef PLIMSOLL_TENSOR_OPERATOR

#define PLIMSOLL_TENSOR_OPERATOR(symbol, name)                                                             \
  Tensor operator symbol(Tensor&& a, const Tensor& b) { return pair_over(BinaryOp::name, a, b, a); }       \
  Tensor operator symbol(const Tensor& a, Tensor&& b) { return pair_over(BinaryOp::name, a, b, b); }       \
  Tensor operator symbol(Tensor&& a, Tensor&& b) { return pair_over(BinaryOp::name, a, b, larger(a, b)); } \
  Tensor operator symbol(Tensor&& a, const Number& b) { return pair(BinaryOp::name, a, b, false, &a); }    \
  Tensor operator symbol(const Number& a, Tensor&& b) { return pair(BinaryOp::name, b, a, true, &b); }
PLIMSOLL_TENSOR_OPERATOR(+, add)
PLIMSOLL_TENSOR_OPERATOR(-, subtract)
PLIMSOLL_TENSOR_OPERATOR(*, multiply)
PLIMSOLL_TENSOR_OPERATOR(/, divide)
#undef PLIMSOLL_TENSOR_OPERATOR

}  // namespace plimsoll
