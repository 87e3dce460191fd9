#include "plimsoll/kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/broadcast.h"
#include "plimsoll/kernels/internal/matmul_halves.h"
#include "plimsoll/kernels/internal/matmul_integers.h"
#include "plimsoll/kernels/internal/matmul_product.h"

namespace plimsoll::internal {
namespace {

// The product of the first matrices, without the addresses.
MatmulProduct product_of(const Shape& a, const Shape& b, DType dtype, MatmulFlags flags) noexcept {
  const std::int64_t a_rows = a[a.rank() - 2], a_columns = a.back(), b_rows = b[b.rank() - 2], b_columns = b.back();
  MatmulProduct x;
  x.source = dtype;
  x.m = flags.transpose_a ? a_columns : a_rows;
  x.k = flags.transpose_a ? a_rows : a_columns;
  x.n = flags.transpose_b ? b_rows : b_columns;
  x.a_row = flags.transpose_a ? 1 : a_columns;
  x.a_column = flags.transpose_a ? a_columns : 1;
  x.b_row = flags.transpose_b ? 1 : b_columns;
  x.b_column = flags.transpose_b ? b_columns : 1;
  x.c_row = x.n;
  x.accumulate = flags.accumulate;
  x.part_of_rows = flags.part_of_rows;
  return x;
}

Sizes batch_of(const Shape& shape) noexcept { return shape.sizes().first(shape.rank() - 2); }

// The place of each batch's matrices.
class Batches {
 public:
  Batches(const MatmulProduct& first, const Shape& a, const Shape& b, const TensorView& out) noexcept
      : count_(static_cast<std::int64_t>(out.size()) / (first.m * first.n)) {
    if (count_ == 1) return;
    const Sizes operands[] = {batch_of(a), batch_of(b)};
    plan_ = plan_broadcast(operands, 2, batch_of(out.shape()));
  }
  std::int64_t count() const noexcept { return count_; }
  MatmulProduct product(const MatmulProduct& first, std::int64_t batch) const noexcept {
    MatmulProduct x = first;
    if (batch == 0) return x;
    const auto in = static_cast<std::int64_t>(size_of(x.source));
    x.a += plan_.offset(0, batch) * x.m * x.k * in;
    x.b += plan_.offset(1, batch) * x.k * x.n * in;
    x.c += batch * x.m * x.n * in;
    return x;
  }

 private:
  std::int64_t count_;
  Broadcast plan_;
};

// Small products: items of all batches side by side.
void multiply_in_place(const MatmulProduct& first, const Batches& batches) noexcept {
  const std::int64_t items = first.items(), all = items * batches.count();
  const double work = first.work() / static_cast<double>(items);
  const std::int64_t batch = work >= kMatmulItem ? 1 : static_cast<std::int64_t>(kMatmulItem / work);
  parallel_for(all, batch, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) batches.product(first, i / items).multiply_item(i % items);
  });
}

void multiply(const MatmulProduct& first, const Batches& batches, std::byte* scratch) noexcept {
  if (is_integer(first.source))
    return multiply_integers(first, batches.count(), [&](std::int64_t i) { return batches.product(first, i); });
  if (first.is_direct()) return multiply_in_place(first, batches);
  for (std::int64_t i = 0; i < batches.count(); ++i) {
    const MatmulProduct x = batches.product(first, i);
    if (is_half(x.source))
      multiply_halves(x, scratch);
    else
      x.multiply_packed(scratch);
  }
}

// Half types and integers get the epilogue afterwards; so does the product without an inner size.
bool finishes_hot(DType dtype) noexcept { return dtype == f32 || dtype == f64; }

void finish_whole(const TensorView& out, const MatmulEpilogue& epilogue) noexcept {
  if (epilogue.bias) binary(BinaryOp::add, out, *epilogue.bias, out);
  if (epilogue.activation) unary(*epilogue.activation, out, out);
}

MatmulFinish finish_of(const MatmulEpilogue& epilogue, DType dtype) noexcept {
  MatmulFinish finish;
  if (epilogue.bias) finish.bias = epilogue.bias->bytes();
  if (!epilogue.activation) return finish;
  if (*epilogue.activation == UnaryOp::relu || *epilogue.activation == UnaryOp::relu6) {
    finish.rectifier.on = true;
    if (*epilogue.activation == UnaryOp::relu6) finish.rectifier.most = 6;
    return finish;
  }
  if (epilogue.bias) finish.add = loops().binary[static_cast<std::size_t>(BinaryOp::add)][native_type(dtype)][0];
  finish.activation = loops().unary[static_cast<std::size_t>(*epilogue.activation)][native_type(dtype)][0];
  return finish;
}

}  // namespace

bool is_matmul_supported(DType dtype) noexcept { return is_floating(dtype) || dtype == i32 || dtype == i64; }

std::size_t matmul_scratch_bytes(const Shape& a, const Shape& b, DType dtype, MatmulFlags flags) noexcept {
  const MatmulProduct x = product_of(a, b, dtype, flags);
  if (is_integer(dtype) || x.work() == 0 || x.is_direct()) return 0;
  return is_half(dtype) ? halves_bytes(x) : x.packed_bytes();
}

void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, MatmulFlags flags,
            std::span<std::byte> scratch, const MatmulEpilogue& epilogue) noexcept {
  if (out.size() == 0) return;
  PLIMSOLL_CHECK(is_matmul_supported(out.dtype()));
  MatmulProduct first = product_of(a.shape(), b.shape(), out.dtype(), flags);
  if (first.k == 0) {
    if (!flags.accumulate) std::memset(out.bytes(), 0, out.nbytes());
    return finish_whole(out, epilogue);
  }
  PLIMSOLL_CHECK(scratch.size() >= matmul_scratch_bytes(a.shape(), b.shape(), out.dtype(), flags));
  first.a = a.bytes();
  first.b = b.bytes();
  first.c = out.bytes();
  if (finishes_hot(out.dtype())) first.finish = finish_of(epilogue, out.dtype());
  multiply(first, Batches(first, a.shape(), b.shape(), out), scratch.data());
  if (!finishes_hot(out.dtype())) finish_whole(out, epilogue);
}

}  // namespace plimsoll::internal
