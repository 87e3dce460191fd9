// Matrix products of i32 and i64: plain loops, sums wrap.
#pragma once

#include "plimsoll/base/function_ref.h"
#include "plimsoll/kernels/internal/matmul_product.h"

namespace plimsoll::internal {

// `batches` products of the sizes of `first`, in parallel over all their rows; product(i) is the i-th of them.
void multiply_integers(const MatmulProduct& first, std::int64_t batches,
                       FunctionRef<MatmulProduct(std::int64_t batch)> product) noexcept;

}  // namespace plimsoll::internal
