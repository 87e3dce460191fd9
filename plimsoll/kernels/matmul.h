// Matrix products of f32 and f64, batched, with transposed operands.
//
//   matmul(a, b, out, {.transpose_b = true}, scratch);     // a [8, 32], b [4, 32], out [8, 4]
//   matmul(a, b, out, {}, scratch);                        // a [10, 1, 8, 32], b [7, 32, 4], out [10, 7, 8, 4]
//
// The last two axes are matrices, those before are batches and broadcast. A hand-written kernel over packed panels: no
// library, no allocation; the panels lie in `scratch`. Sums run over the inner axis in order, in blocks, fused
// multiply-add where the processor has it; the result depends on shapes alone, not on threads or batches.
// Thread safety: any thread, with its own scratch. Never throws.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll {

struct MatmulFlags {
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;  // out += instead of out =.
};

// f32 and f64; other dtypes are converted by the caller.
PLIMSOLL_API bool is_matmul_supported(DType dtype) noexcept;

// Bytes of scratch that matmul() wants for these shapes: grows with them up to some 3.2 MiB for f32, 6.3 MiB for f64.
PLIMSOLL_API std::size_t matmul_scratch_bytes(const Shape& a, const Shape& b, DType dtype, MatmulFlags flags) noexcept;

// Requires inner sizes that agree, `out` of the broadcast batch shape, no overlap, one dtype, and scratch of
// matmul_scratch_bytes() aligned to 64 bytes. An inner size of 0 gives zeros.
PLIMSOLL_API void matmul(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, MatmulFlags flags,
                         std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll
