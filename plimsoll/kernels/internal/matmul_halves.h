// Matrix products of f16 and bf16: summed in f32, part by part of the result in scratch, each part rounded once.
#pragma once

#include "plimsoll/kernels/internal/matmul_product.h"

namespace plimsoll::internal {

std::size_t halves_bytes(const MatmulProduct& product) noexcept;  // The size of the scratch.

// As multiply_packed(), but `c` has the dtype of the operands. The product has no epilogue.
void multiply_halves(const MatmulProduct& product, std::byte* scratch) noexcept;

}  // namespace plimsoll::internal
