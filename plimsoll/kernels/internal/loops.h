// Loops: for each operation and element type the innermost loop, over dense elements. One table per instruction set;
// loops() is that of the best one this processor has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/dtype.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll {

// out[i] = f(in[0][i], ...) for i < n. `out` may be one of the inputs.
using Loop = void (*)(const void* const* in, void* out, std::int64_t n);

// The types that are computed as they are.
enum NativeType { kNativeF32, kNativeF64, kNativeI32, kNativeI64, kNativeBool, kNumNative };

constexpr DType native_dtype(DType dtype) noexcept {
  if (dtype == u8 || dtype == i8 || dtype == i16) return i32;
  return is_half(dtype) ? f32 : dtype;
}
constexpr NativeType native_type(DType dtype) noexcept {
  const DType native = native_dtype(dtype);
  return native == f32   ? kNativeF32
         : native == f64 ? kNativeF64
         : native == i32 ? kNativeI32
         : native == i64 ? kNativeI64
                         : kNativeBool;
}

// Null where an operation does not exist for a type.
struct Loops {
  const char* name;
  Loop binary[static_cast<std::size_t>(BinaryOp::kCount)][kNumNative];
  Loop unary[static_cast<std::size_t>(UnaryOp::kCount)][kNumNative];
  Loop select[4];  // For elements of 1, 2, 4 and 8 bytes: condition, a, b.
  Loop f16_to_f32, f32_to_f16, bf16_to_f32, f32_to_bf16;
};

const Loops& loops() noexcept;

const Loops& loops_baseline() noexcept;
const Loops& loops_avx2() noexcept;
const Loops& loops_avx512() noexcept;
bool has_avx2() noexcept;
bool has_avx512() noexcept;

}  // namespace plimsoll
