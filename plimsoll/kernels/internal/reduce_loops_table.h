// Builds the table of reduction loops for the instruction set this file is compiled for. Included by the
// reduce_loops_*.cc files only.
#pragma once

#include <type_traits>

#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/internal/vector.h"

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

template <Fold F, class T>
inline T fold_lanes(Vector<T> v) noexcept {
  T lanes[kLanesOf<T>];
  store(lanes, v);
  for (std::int64_t half = kLanesOf<T> / 2; half > 0; half /= 2)
    for (std::int64_t c = 0; c < half; ++c) lanes[c] = folded<F>(lanes[c], lanes[c + half]);
  return lanes[0];
}

// Floats: kChains vectors, then a tree; then what is left vector by vector and element by element. Requires n > 0.
template <Fold F, class T>
inline T fold_block(const T* x, std::int64_t n) noexcept {
  constexpr std::int64_t kWidth = kLanesOf<T>, kStep = kChains * kWidth;
  if (n < kWidth) {
    T result = x[0];
    for (std::int64_t i = 1; i < n; ++i) result = folded<F>(result, x[i]);
    return result;
  }
  Vector<T> total = load(x);
  std::int64_t i = kWidth;
  if (n >= kStep) {
    Vector<T> chains[kChains];
    for (int c = 0; c < kChains; ++c) chains[c] = load(x + c * kWidth);
    for (i = kStep; i + kStep <= n; i += kStep)
      for (int c = 0; c < kChains; ++c) chains[c] = folded<F>(chains[c], load(x + i + c * kWidth));
    for (int half = kChains / 2; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) chains[c] = folded<F>(chains[c], chains[c + half]);
    total = chains[0];
  }
  for (; i + kWidth <= n; i += kWidth) total = folded<F>(total, load(x + i));
  T result = fold_lanes<F, T>(total);
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
    PLIMSOLL_INDEPENDENT
    for (std::int64_t c = 0; c < columns; ++c)
      block[c] = folded<F>(block[c], folded<F>(folded<F>(A(x0[c]), A(x1[c])), folded<F>(A(x2[c]), A(x3[c]))));
  }
  for (; r < rows; ++r) {
    const T* row = x + r * stride;
    PLIMSOLL_INDEPENDENT
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
    {PLIMSOLL_FOLDS(kFoldSum), PLIMSOLL_FOLDS(kFoldProduct), PLIMSOLL_FOLDS(kFoldMax), PLIMSOLL_FOLDS(kFoldMin)}};

}  // namespace
}  // namespace plimsoll
