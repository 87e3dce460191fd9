// Products of matrices, batches of them, and of vectors.
//
//   matmul(x, w)                              // x [8, 32], w [32, 4]: [8, 4]
//   matmul(x, w, {.transpose_b = true})       // w [4, 32]
//   matmul(q, k, {.transpose_b = true})       // q [16, 12, 64, 32], k [12, 64, 32]: [16, 12, 64, 64]
//   matmul(m, v)                              // v [32]: used as a column, which is dropped again, as in NumPy
//
// The last two axes are the matrices; those before are batches and broadcast. Takes floats, i32 and i64; f16 and bf16
// are summed in f32, integers wrap.
// Throws InvalidArgument for scalars, inner sizes or batches that do not match, and other dtypes.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool operator==(const MatmulOptions&) const = default;
};

PLIMSOLL_API Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});

// For two vectors of one size: the sum of their products; and all products, [n, m].
PLIMSOLL_API Tensor dot(const Tensor& a, const Tensor& b);
PLIMSOLL_API Tensor outer(const Tensor& a, const Tensor& b);

}  // namespace plimsoll
