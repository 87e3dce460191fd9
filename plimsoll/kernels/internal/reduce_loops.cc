// Compiled once per instruction set: see instruction_sets.h.
#include <type_traits>

#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBlockRows = 64;   // Rows folded in the element type before the accumulators.
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
    return larger(a, A(b));
  } else {
    return smaller(a, A(b));
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

// Floats: kChains vectors, then a tree; then the rest vector by vector and element by element. Requires n > 0.
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

// Four rows' elements, or vectors of them, folded as a tree and into the accumulator.
template <Fold F, class A>
inline A with_four(A total, A a, A b, A c, A d) noexcept {
  return folded<F>(total, folded<F>(folded<F>(a, b), folded<F>(c, d)));
}

// block[c] = folded(block[c], ...) over four rows (or one), column by column.
template <Fold F, class T, class A, bool kFour>
void fold_row_group(const T* x, std::int64_t stride, std::int64_t columns, A* block) noexcept {
  std::int64_t c = 0;
  if constexpr (std::is_floating_point_v<T>)
    for (; c + kLanesOf<T> <= columns; c += kLanesOf<T>) {
      const Vector<T> total = load(block + c), first = load(x + c);
      if constexpr (kFour)
        store(block + c,
              with_four<F>(total, first, load(x + stride + c), load(x + 2 * stride + c), load(x + 3 * stride + c)));
      else
        store(block + c, folded<F>(total, first));
    }
  PLIMSOLL_INDEPENDENT
  for (std::int64_t i = c; i < columns; ++i) {
    if constexpr (kFour)
      block[i] = with_four<F>(block[i], A(x[i]), A(x[stride + i]), A(x[2 * stride + i]), A(x[3 * stride + i]));
    else
      block[i] = folded<F>(block[i], A(x[i]));
  }
}

template <Fold F, class T, class A>
void fold_row_block(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, A* block) noexcept {
  for (std::int64_t c = 0; c < columns; ++c) block[c] = A(x[c]);
  std::int64_t r = 1;
  for (; r + 4 <= rows; r += 4) fold_row_group<F, T, A, true>(x + r * stride, stride, columns, block);
  for (; r < rows; ++r) fold_row_group<F, T, A, false>(x + r * stride, stride, columns, block);
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

template <class T>
bool is_among(const T* x, std::int64_t n, T value) noexcept {
  unsigned hits = 0;
  if (value != value)
    for (std::int64_t i = 0; i < n; ++i) hits |= x[i] != x[i];
  else
    for (std::int64_t i = 0; i < n; ++i) hits |= x[i] == value;
  return hits != 0;
}

// The extreme first, then where it is: first in which piece.
template <Fold F, class T>
std::int64_t position_in_run(const void* data, std::int64_t n) {
  constexpr std::int64_t kPiece = 128;
  const T* x = static_cast<const T*>(data);
  T value = x[0];
  fold_run<F, T>(x, n, &value);
  std::int64_t i = 0;
  while (i + kPiece < n && !is_among(x + i, kPiece, value)) i += kPiece;
  while (x[i] != value && (x[i] == x[i] || value == value)) ++i;
  return i;
}

template <Fold F, class T>
void positions_in_columns(const void* data, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                          std::int64_t* out) {
  using Index = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const T* x = static_cast<const T*>(data);
  alignas(64) T best[kPositionColumns];
  alignas(64) Index where[kPositionColumns];
  for (std::int64_t c = 0; c < columns; ++c) best[c] = x[c], where[c] = 0;
  for (std::int64_t r = 1; r < rows; ++r) {
    const T* row = x + r * stride;
    PLIMSOLL_INDEPENDENT
    for (std::int64_t c = 0; c < columns; ++c) {
      const T value = row[c], old = best[c];
      const bool wins = (F == kFoldMax ? value > old : value < old) | ((value != value) & (old == old));
      best[c] = wins ? value : old;
      where[c] = wins ? static_cast<Index>(r) : where[c];
    }
  }
  for (std::int64_t c = 0; c < columns; ++c) out[c] = where[c];
}

template <Fold F, class T>
constexpr PositionLoops kPositionsOf = {position_in_run<F, T>, positions_in_columns<F, T>};

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

#define PLIMSOLL_POSITIONS(F)                                                                                      \
  {                                                                                                                \
    kPositionsOf<F, float>, kPositionsOf<F, double>, kPositionsOf<F, std::int32_t>, kPositionsOf<F, std::int64_t>, \
        kPositionsOf<F, std::uint8_t>                                                                              \
  }

}  // namespace

constinit const ReduceLoops PLIMSOLL_INSTRUCTION_SET::reduce_loops = {
    {PLIMSOLL_FOLDS(kFoldSum), PLIMSOLL_FOLDS(kFoldProduct), PLIMSOLL_FOLDS(kFoldMax), PLIMSOLL_FOLDS(kFoldMin)},
    PLIMSOLL_POSITIONS(kFoldMax),
    PLIMSOLL_POSITIONS(kFoldMin)};

}  // namespace plimsoll::internal
