// Arithmetic with sparse tensors: sums, products, softmax.
//
//   Tensor y = sparse_matmul(s, w);                 // sparse [m, k] times dense [k, n]; also dense times sparse
//   SparseTensor p = sparse_matmul(s, t);           // sparse times sparse
//   SparseTensor z = (s + t) * 2.f; SparseTensor r = s * dense; SparseTensor a = sparse_softmax(s);
//
// Gradients flow to the values of the sparse operands and to the dense ones. Entries that are not stored take no part
// in a product, so an infinity opposite them does not become NaN. Operands have one dtype; products take floats, i32
// and i64; f16 and bf16 are summed in f32.
// Throws InvalidArgument that names both shapes, Disposed and OutOfMemory; then nothing has changed.
// Cost: products with dense operands allocate only the result, and with transpose_a a copy of the structure.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/sparse_tensor.h"

namespace plimsoll {

// For matrices; a dense operand may be a vector, as in matmul. transpose_a and transpose_b apply to that operand.
PLIMSOLL_API Tensor sparse_matmul(const SparseTensor& a, const Tensor& b, MatmulOptions options = {});
PLIMSOLL_API Tensor sparse_matmul(const Tensor& a, const SparseTensor& b, MatmulOptions options = {});
PLIMSOLL_API SparseTensor sparse_matmul(const SparseTensor& a, const SparseTensor& b, MatmulOptions options = {});

// For one shape: entries where either operand has one.
PLIMSOLL_API SparseTensor operator+(const SparseTensor& a, const SparseTensor& b);
PLIMSOLL_API SparseTensor operator-(const SparseTensor& a, const SparseTensor& b);

PLIMSOLL_API SparseTensor operator-(const SparseTensor& x);
PLIMSOLL_API SparseTensor operator*(const SparseTensor& x, const Number& number);
PLIMSOLL_API SparseTensor operator*(const Number& number, const SparseTensor& x);
PLIMSOLL_API SparseTensor operator/(const SparseTensor& x, const Number& number);

// Entry by entry with a dense tensor that has, or broadcasts to, the sparse one's shape.
PLIMSOLL_API SparseTensor operator*(const SparseTensor& x, const Tensor& dense);
PLIMSOLL_API SparseTensor operator*(const Tensor& dense, const SparseTensor& x);
PLIMSOLL_API SparseTensor operator/(const SparseTensor& x, const Tensor& dense);

// Over the entries of each row (along the last axis); those that are not stored count as -infinity. Takes floats.
PLIMSOLL_API SparseTensor sparse_softmax(const SparseTensor& x);

}  // namespace plimsoll
