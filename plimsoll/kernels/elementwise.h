// Elementwise kernels: arithmetic, comparison, logic, mathematics, selection and casts, with NumPy broadcasting.
//
//   binary(BinaryOp::add, a, b, out);        // a [8, 1], b [3], out [8, 3]
//   unary(UnaryOp::tanh, x, x);              // In place.
//   ternary(TernaryOp::clip, x, low, high, out);
//   copy(scalar, out);                       // Fills; copy() casts and broadcasts.
//
// Every kernel requires operands whose shapes broadcast to the output's; the operands have one dtype (except for copy
// and the condition of select), and the output has result_dtype(). The output may be exactly an operand's memory when
// that operand is not broadcast; otherwise they do not overlap. f32, f64, i32, i64 and bool are computed directly; u8,
// i8, i16 through i32 and f16, bf16 through f32, tile by tile on the stack. Integers wrap. Thread safety: any thread.
// Cost: no allocation, never throws; parallel from about 32k elements, cut by shape alone, so results do not depend on
// the number of threads. Outputs of 16 MiB and more are written around the caches. Operands of the output's size and
// single elements are used directly, within a few nanoseconds; other broadcasts are planned first.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class BinaryOp : unsigned char {
#define PLIMSOLL_BINARY(name, types, result, value) name,
#include "plimsoll/kernels/binary_ops.inc"
  kCount
};

enum class UnaryOp : unsigned char {
#define PLIMSOLL_UNARY(name, types, result, value) name,
#include "plimsoll/kernels/unary_ops.inc"
  kCount
};

enum class TernaryOp : unsigned char {
#define PLIMSOLL_TERNARY(name, types, result, value) name,
#include "plimsoll/kernels/ternary_ops.inc"
  kCount
};

PLIMSOLL_API const char* op_name(BinaryOp op) noexcept;
PLIMSOLL_API const char* op_name(UnaryOp op) noexcept;
PLIMSOLL_API const char* op_name(TernaryOp op) noexcept;

// Whether the operation exists for operands of this dtype: logarithms of integers and sums of bools do not.
PLIMSOLL_API bool is_supported(BinaryOp op, DType dtype) noexcept;
PLIMSOLL_API bool is_supported(UnaryOp op, DType dtype) noexcept;
PLIMSOLL_API bool is_supported(TernaryOp op, DType dtype) noexcept;

// The dtype of the result: boolean for comparisons, logic and tests, else that of the operands.
PLIMSOLL_API DType result_dtype(BinaryOp op, DType dtype) noexcept;
PLIMSOLL_API DType result_dtype(UnaryOp op, DType dtype) noexcept;
PLIMSOLL_API DType result_dtype(TernaryOp op, DType dtype) noexcept;

// Requires is_supported(op, dtype).
PLIMSOLL_API void binary(BinaryOp op, const ConstTensorView& a, const ConstTensorView& b,
                         const TensorView& out) noexcept;
PLIMSOLL_API void unary(UnaryOp op, const ConstTensorView& x, const TensorView& out) noexcept;
PLIMSOLL_API void ternary(TernaryOp op, const ConstTensorView& a, const ConstTensorView& b, const ConstTensorView& c,
                          const TensorView& out) noexcept;

// The same for operands that are dense like the result, or a single element.
struct FlatOperand {
  const void* data;
  bool repeated = false;
};
PLIMSOLL_API void binary(BinaryOp op, DType dtype, FlatOperand a, FlatOperand b, void* out, std::size_t size) noexcept;
PLIMSOLL_API void unary(UnaryOp op, DType dtype, const void* x, void* out, std::size_t size) noexcept;

// out = condition ? a : b. The condition is boolean; a, b and out have one dtype, any.
PLIMSOLL_API void select(const ConstTensorView& condition, const ConstTensorView& a, const ConstTensorView& b,
                         const TensorView& out) noexcept;

// out = x, broadcast and converted. Floats become integers by truncation (NaN becomes 0, values out of range the
// nearest); integers become narrower ones by wrapping; nonzero is true. Rounds to nearest, ties to even.
PLIMSOLL_API void copy(const ConstTensorView& x, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
