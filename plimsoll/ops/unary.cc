#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll {

void Unary::infer(const Specs& in, SpecList& out) const {
  if (!is_supported(op_, in.dtype(0))) [[unlikely]]
    refuse_dtype(*this, in.dtype(0));
  out.add(in.shape(0), result_dtype(op_, in.dtype(0)));
}

void Unary::run(const OpRun& run) const noexcept { unary(op_, run.in[0], run.out[0]); }

bool Unary::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  return launch_unary(queue, op_name(op_), run.in[0], run.out[0]);
}

namespace {

void run_single(const Op& op, DType dtype, const void* x, const void*, void* out, std::size_t size) noexcept {
  unary(static_cast<const Unary&>(op).op(), dtype, x, out, size);
}

Tensor single(UnaryOp which, Tensor& x) {
  const Unary op(which);
  if (is_supported(which, x.dtype())) [[likely]] {
    std::optional<Tensor> quick = execute_flat(op, x, nullptr, result_dtype(which, x.dtype()), run_single, &x);
    if (quick) [[likely]] {
      x = Tensor();  // An argument may live until the end of the caller's expression.
      return *std::move(quick);
    }
  }
  const Tensor* const input = &x;
  return execute_over(op, std::move(x), {&input, 1});
}

}  // namespace

#define PLIMSOLL_UNARY_OP(name, reads, gradient) \
  Tensor name(Tensor x) { return single(UnaryOp::name, x); }
#include "plimsoll/ops/elementwise_ops.inc"

Tensor gelu(Tensor x, bool approximate) { return approximate ? gelu_tanh(std::move(x)) : gelu(std::move(x)); }

Tensor operator-(const Tensor& x) { return negative(x); }
Tensor operator!(const Tensor& x) { return logical_not(x); }

}  // namespace plimsoll
