// Loops: for each operation and element type the innermost loops, over dense elements and single repeated ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/dtype.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

// out[i] = f(in[0][i], ...) for i < n. `out` may be one of the inputs.
using Loop = void (*)(const void* const* in, void* out, std::int64_t n);

// One operation's loops, indexed by which operands are a single repeated element: bit i is set for in[i]. Null where
// there is none: such operands are then repeated in a buffer. [0], all operands dense, is null only when the operation
// does not exist for the type.
template <int kOperands>
using LoopSet = Loop[std::size_t{1} << kOperands];

// The types that are computed without conversion.
enum NativeType : unsigned char { kNativeF32, kNativeF64, kNativeI32, kNativeI64, kNativeBool, kNumNative };

// Tables outside the functions: gcc would build local ones in every call.
inline constexpr DType kNativeDTypes[kNumDTypes] = {boolean, i32, i32, i32, i32, i64, f32, f32, f32, f64};
inline constexpr NativeType kNativeTypes[kNumDTypes] = {kNativeBool, kNativeI32, kNativeI32, kNativeI32, kNativeI32,
                                                        kNativeI64,  kNativeF32, kNativeF32, kNativeF32, kNativeF64};
constexpr DType native_dtype(DType dtype) noexcept { return kNativeDTypes[static_cast<std::size_t>(dtype)]; }
constexpr NativeType native_type(DType dtype) noexcept { return kNativeTypes[static_cast<std::size_t>(dtype)]; }

// Which of the four a dtype uses.
inline constexpr unsigned char kSizeIndexOf[kNumDTypes] = {0, 0, 0, 1, 2, 3, 1, 1, 2, 3};
constexpr std::size_t size_index(DType dtype) noexcept { return kSizeIndexOf[static_cast<std::size_t>(dtype)]; }

// Null where an operation does not exist for a type.
struct Loops {
  const char* name;
  LoopSet<1> unary[static_cast<std::size_t>(UnaryOp::kCount)][kNumNative];
  LoopSet<2> binary[static_cast<std::size_t>(BinaryOp::kCount)][kNumNative];
  LoopSet<3> ternary[static_cast<std::size_t>(TernaryOp::kCount)][kNumNative];
  LoopSet<3> select[4];  // For elements of 1, 2, 4 and 8 bytes: condition, a, b.
  Loop fill[4];          // out[i] = in[0][0], for the same sizes.
  Loop f16_to_f32, f32_to_f16, bf16_to_f32, f32_to_bf16;
};

PLIMSOLL_LOOPS(Loops, loops)

}  // namespace plimsoll::internal
