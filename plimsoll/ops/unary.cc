#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"

namespace plimsoll {

void Unary::infer(const Specs& in, SpecList& out) const {
  if (!is_supported(op_, in.dtype(0))) [[unlikely]]
    refuse_dtype(*this, in.dtype(0));
  out.add(in.shape(0), result_dtype(op_, in.dtype(0)));
}

void Unary::run(const OpRun& run) const noexcept { unary(op_, run.in[0], run.out[0]); }

namespace {

void run_single(const Op& op, DType dtype, const void* x, const void*, void* out, std::size_t size) noexcept {
  unary(static_cast<const Unary&>(op).op(), dtype, x, out, size);
}

Tensor single(UnaryOp which, Tensor& x) {
  const Unary op(which);
  if (is_supported(which, x.dtype())) [[likely]] {
    Tensor quick = execute_alike(op, x, nullptr, result_dtype(which, x.dtype()), run_single, &x);
    if (!quick.is_empty_handle()) [[likely]] {
      x = Tensor();  // An argument may live on until the end of the caller's expression.
      return quick;
    }
  }
  const Tensor* const input = &x;
  return execute_over(op, std::move(x), {&input, 1});
}

}  // namespace

#define PLIMSOLL_SINGLE(name) \
  Tensor name(Tensor x) { return single(UnaryOp::name, x); }
PLIMSOLL_SINGLE(negative)
PLIMSOLL_SINGLE(abs)
PLIMSOLL_SINGLE(sign)
PLIMSOLL_SINGLE(square)
PLIMSOLL_SINGLE(sqrt)
PLIMSOLL_SINGLE(rsqrt)
PLIMSOLL_SINGLE(reciprocal)
PLIMSOLL_SINGLE(floor)
PLIMSOLL_SINGLE(ceil)
PLIMSOLL_SINGLE(round)
PLIMSOLL_SINGLE(exp)
PLIMSOLL_SINGLE(expm1)
PLIMSOLL_SINGLE(log)
PLIMSOLL_SINGLE(log1p)
PLIMSOLL_SINGLE(sin)
PLIMSOLL_SINGLE(cos)
PLIMSOLL_SINGLE(tan)
PLIMSOLL_SINGLE(asin)
PLIMSOLL_SINGLE(acos)
PLIMSOLL_SINGLE(atan)
PLIMSOLL_SINGLE(sinh)
PLIMSOLL_SINGLE(cosh)
PLIMSOLL_SINGLE(tanh)
PLIMSOLL_SINGLE(erf)
PLIMSOLL_SINGLE(is_nan)
PLIMSOLL_SINGLE(is_inf)
PLIMSOLL_SINGLE(is_finite)
PLIMSOLL_SINGLE(logical_not)
PLIMSOLL_SINGLE(relu)
PLIMSOLL_SINGLE(relu6)
PLIMSOLL_SINGLE(elu)
PLIMSOLL_SINGLE(selu)
PLIMSOLL_SINGLE(gelu)
PLIMSOLL_SINGLE(sigmoid)
PLIMSOLL_SINGLE(hard_sigmoid)
PLIMSOLL_SINGLE(softplus)
PLIMSOLL_SINGLE(softsign)
PLIMSOLL_SINGLE(swish)
#undef PLIMSOLL_SINGLE

Tensor operator-(const Tensor& x) { return negative(x); }
Tensor operator!(const Tensor& x) { return logical_not(x); }

}  // namespace plimsoll
