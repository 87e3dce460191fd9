// Matrix products, batched, with transposed operands, and a layer's bias and activation in the same pass.
//
//   matmul(a, b, out, {.transpose_b = true}, scratch);     // a [8, 32], b [4, 32], out [8, 4]
//   matmul(a, b, out, {}, scratch);                        // a [10, 1, 8, 32], b [7, 32, 4], out [10, 7, 8, 4]
//   matmul(x, w, out, {}, scratch, {.bias = &bias, .activation = UnaryOp::relu});
//
// The last two axes are matrices, those before are batches and broadcast. Our own kernels, no library, no allocation:
// small products read their operands in place, large ones pack panels of them into `scratch`. f32 and f64 are summed
// over the inner axis in order, in blocks, with fused multiply-add where the processor has it; f16 and bf16 in f32,
// rounded once at the end; i32 and i64 wrap. The result depends only on shapes, not on threads. Thread safety: any
// thread, with its own scratch. Never throws. Parallel over blocks and batches from about 130k multiplications.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll::internal {

struct MatmulFlags {
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // out += instead of out =.
  std::int64_t part_of_rows =
      0;  // These are some rows of a product of so many: they get the bits that they have there.
};

// Applied to the product while it is in the caches; gives the same bits as binary(BinaryOp::add, out, bias, out) and
// unary(activation, out, out) afterwards.
struct MatmulEpilogue {
  const ConstTensorView* bias = nullptr;  // One row, of out's last size and dtype.
  std::optional<UnaryOp> activation = {};
};

// f16, bf16, f32, f64, i32 and i64; other dtypes are converted by the caller.
PLIMSOLL_API bool is_matmul_supported(DType dtype) noexcept;

// Bytes of scratch that matmul() needs for these shapes: none for integers and small products; else they grow with the
// shapes up to about 3.5 MiB, for half types 5.5 MiB.
PLIMSOLL_API std::size_t matmul_scratch_bytes(const Shape& a, const Shape& b, DType dtype, MatmulFlags flags) noexcept;

// Requires inner sizes that agree, `out` of the broadcast batch shape, no overlap, one dtype, scratch of
// matmul_scratch_bytes() aligned to 64 bytes, and an activation whose result has the dtype. An inner size of 0 yields
// zeros.
PLIMSOLL_API void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, MatmulFlags flags,
                         std::span<std::byte> scratch, const MatmulEpilogue& epilogue = {}) noexcept;

}  // namespace plimsoll::internal
