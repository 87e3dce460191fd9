// Builds the table of reduction loops for the instruction set this file is compiled for. Included by the
// reduce_loops_*.cc files only.
#pragma once

#include <type_traits>

#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kBlockRows = 64;   // Rows folded in the element type before they go to the accumulators.
constexpr std::int64_t kBlockRun = 2048;  // Elements likewise.
constexpr int kChains = 8;                // Vectors folded independently.

template <Fold F, class T>
using Accumulator = std::conditional_t<F == kFoldMax || F == kFoldMin, T,
                                       std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>>;

// Works for elements, accumulators and vectors of them.
template <Fold F, class A, class B>
inline A folded(A a, B b) noexcept {
  if constexpr (F == kFoldSum) {
    if constexpr (std::is_same_v<A, std::int64_t>)
      return static_cast<A>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  } else if constexpr (F == kFoldProduct) {
    if constexpr (std::is_same_v<A, std::int64_t>)
      return static_cast<A>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
      return a * b;
  } else if constexpr (F == kFoldMax) {
    return (b > a) | (b != b) ? b : a;
  } else {
    return (b < a) | (b != b) ? b : a;
  }
}

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};

// Floats: kChains vectors, then a tree.
template <Fold F, class T>
T fold_block(const T* x, std::int64_t n) noexcept {
  using V = typename VectorOf<T>::type;
  constexpr std::int64_t kWidth = kVectorBytes / sizeof(T);
  T result = x[0];
  std::int64_t i = 1;
  if (n >= kChains * kWidth) {
    V chains[kChains];
    for (int c = 0; c < kChains; ++c) __builtin_memcpy(&chains[c], x + c * kWidth, sizeof(V));
    for (i = kChains * kWidth; i + kChains * kWidth <= n; i += kChains * kWidth)
      for (int c = 0; c < kChains; ++c) {
        V v;
        __builtin_memcpy(&v, x + i + c * kWidth, sizeof(V));
        chains[c] = folded<F>(chains[c], v);
      }
    for (int half = kChains / 2; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) chains[c] = folded<F>(chains[c], chains[c + half]);
    T lanes[kWidth];
    __builtin_memcpy(lanes, &chains[0], sizeof(V));
    for (std::int64_t half = kWidth / 2; half > 0; half /= 2)
      for (std::int64_t c = 0; c < half; ++c) lanes[c] = folded<F>(lanes[c], lanes[c + half]);
    result = lanes[0];
  }
  for (; i < n; ++i) result = folded<F>(result, x[i]);
  return result;
}

template <Fold F, class T>
void fold_run(const void* data, std::int64_t n, void* accumulator) {
  using A = Accumulator<F, T>;
  const T* x = static_cast<const T*>(data);
  A total = *static_cast<A*>(accumulator);
  if constexpr (std::is_floating_point_v<T>) {
    for (; n > 0; n -= kBlockRun, x += kBlockRun)
      total = folded<F>(total, A(fold_block<F>(x, n < kBlockRun ? n : kBlockRun)));
  } else {
    for (std::int64_t i = 0; i < n; ++i) total = folded<F>(total, A(x[i]));
  }
  *static_cast<A*>(accumulator) = total;
}

template <Fold F, class T, class A>
void fold_row_block(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, A* block) noexcept {
  for (std::int64_t c = 0; c < columns; ++c) block[c] = A(x[c]);
  std::int64_t r = 1;
  for (; r + 4 <= rows; r += 4) {
    const T *x0 = x + r * stride, *x1 = x0 + stride, *x2 = x1 + stride, *x3 = x2 + stride;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < columns; ++c)
      block[c] = folded<F>(block[c], folded<F>(folded<F>(A(x0[c]), A(x1[c])), folded<F>(A(x2[c]), A(x3[c]))));
  }
  for (; r < rows; ++r) {
    const T* row = x + r * stride;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < columns; ++c) block[c] = folded<F>(block[c], A(row[c]));
  }
}

template <Fold F, class T>
void fold_rows(const void* data, std::int64_t rows, std::int64_t stride, std::int64_t columns, void* accumulators) {
  using A = Accumulator<F, T>;
  using B = std::conditional_t<std::is_floating_point_v<T>, T, A>;  // Within a block.
  const T* x = static_cast<const T*>(data);
  A* totals = static_cast<A*>(accumulators);
  alignas(64) B block[kFoldColumns];
  for (; rows > 0; rows -= kBlockRows, x += kBlockRows * stride) {
    fold_row_block<F>(x, rows < kBlockRows ? rows : kBlockRows, stride, columns, block);
    for (std::int64_t c = 0; c < columns; ++c) totals[c] = folded<F>(totals[c], A(block[c]));
  }
}

double exp_shifted_f32(const float* x, float* y, std::int64_t n, float shift) {
  double total = 0;
  while (n > 0) {
    const std::int64_t block = n < kBlockRun ? n : kBlockRun;
    F32 sum[2] = {};
    std::int64_t i = 0;
    for (; i + 2 * kLanes <= block; i += 2 * kLanes)
      for (int c = 0; c < 2; ++c) {
        const F32 e = exp_of(load(x + i + c * kLanes) - shift);
        store(y + i + c * kLanes, e);
        sum[c] += e;
      }
    for (; i < block; i += kLanes) {
      const std::int64_t left = block - i < kLanes ? block - i : kLanes;
      const F32 e = exp_of(load_some(x + i, left) - shift);
      store_some(y + i, e, left);
      for (std::int64_t lane = 0; lane < left; ++lane) total += double(e[lane]);
    }
    sum[0] += sum[1];
    for (int lane = 0; lane < kLanes; ++lane) total += double(sum[0][lane]);
    x += block, y += block, n -= block;
  }
  return total;
}

void scale_f32(const float* x, float* y, std::int64_t n, float factor) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor;
}

void subtract_f32(const float* x, float* y, std::int64_t n, float first, float second) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - first) - second;
}

template <Fold F, class T>
constexpr FoldLoops kFoldOf = {fold_run<F, T>, fold_rows<F, T>};

template <Fold F>
constexpr FoldLoops bool_fold() noexcept {
  if constexpr (F == kFoldMax || F == kFoldMin)
    return kFoldOf<F, std::uint8_t>;
  else
    return {nullptr, nullptr};
}

// In the order of NativeType.
#define PLIMSOLL_FOLDS(F) \
  { kFoldOf<F, float>, kFoldOf<F, double>, kFoldOf<F, std::int32_t>, kFoldOf<F, std::int64_t>, bool_fold<F>() }

constexpr ReduceLoops kReduceLoops = {
    {PLIMSOLL_FOLDS(kFoldSum), PLIMSOLL_FOLDS(kFoldProduct), PLIMSOLL_FOLDS(kFoldMax), PLIMSOLL_FOLDS(kFoldMin)},
    exp_shifted_f32,
    scale_f32,
    subtract_f32};

}  // namespace
}  // namespace plimsoll
