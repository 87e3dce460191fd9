#include "plimsoll/kernels/reduce.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/internal/reduce_plan.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 32768;   // Elements per chunk.
constexpr std::int64_t kMaxPieces = 16;  // The most pieces that one fold is split into.

constexpr Fold kFolds[] = {kFoldSum, kFoldSum, kFoldProduct, kFoldMax, kFoldMin, kFoldMax, kFoldMin};  // By operation.
Fold fold_of(ReduceOp op) noexcept { return kFolds[static_cast<std::size_t>(op)]; }

// The output that an accumulator of `folded` elements makes.
template <class T, class A>
inline T finished(ReduceOp op, A value, std::int64_t folded) noexcept {
  if (op != ReduceOp::mean) return static_cast<T>(value);
  if constexpr (std::is_floating_point_v<A>)
    return static_cast<T>(value / static_cast<A>(folded));
  else
    return folded == 0 ? T(0) : static_cast<T>(value / static_cast<A>(folded));
}

// One reduction of elements whose native type is T, with accumulators of type A.
template <class T, class A>
struct Reduction {
  ReduceOp op;
  const ReducePlan& plan;
  const std::byte* x;
  std::byte* out;
  DType dtype;
  std::int64_t folded;  // Elements behind one output.
  const FoldLoops& loops;
  const FoldLoops& combine;  // For accumulators.
  Loop widen, narrow;        // Null for native dtypes.
  A identity;

  const std::byte* element(std::int64_t offset) const noexcept {
    return x + static_cast<std::size_t>(offset) * size_of(dtype);
  }

  void fold_run(std::int64_t offset, std::int64_t n, A* accumulator) const noexcept {
    if (!widen) return loops.run(element(offset), n, accumulator);
    T tile[kFoldColumns];
    for (std::int64_t i = 0; i < n; i += kFoldColumns) {
      const void* in = element(offset + i);
      widen(&in, tile, std::min(kFoldColumns, n - i));
      loops.run(tile, std::min(kFoldColumns, n - i), accumulator);
    }
  }

  void fold_rows(std::int64_t offset, std::int64_t rows, std::int64_t columns, A* accumulators) const noexcept {
    if (!widen) return loops.rows(element(offset), rows, plan.row_stride, columns, accumulators);
    T tile[kFoldColumns];
    for (std::int64_t r = 0; r < rows; ++r) {
      const void* in = element(offset + r * plan.row_stride);
      widen(&in, tile, columns);
      loops.rows(tile, 1, columns, columns, accumulators);
    }
  }

  void finish(const A* accumulators, std::int64_t n, std::int64_t position) const noexcept {
    T values[kFoldColumns];
    for (std::int64_t i = 0; i < n; ++i) values[i] = finished<T>(op, accumulators[i], folded);
    std::byte* to = out + static_cast<std::size_t>(position) * size_of(dtype);
    const void* in = values;
    if (narrow)
      narrow(&in, to, n);
    else
      std::memcpy(to, values, static_cast<std::size_t>(n) * sizeof(T));
  }

  // Outputs one by one, each the fold of contiguous runs.
  void by_runs(std::int64_t begin, std::int64_t end) const noexcept {
    const std::int64_t pieces = plan.reduced.count();
    const bool in_order = pieces == 1 && plan.kept.rank <= 1;  // One run after the other.
    for (std::int64_t position = begin; position < end;) {
      A accumulators[kFoldColumns];
      const std::int64_t n = std::min(kFoldColumns, end - position);
      for (std::int64_t i = 0; i < n; ++i) {
        accumulators[i] = identity;
        if (in_order) {
          fold_run((position + i) * plan.run, plan.run, accumulators + i);
          continue;
        }
        const std::int64_t start = plan.kept.offset(position + i);
        for (std::int64_t p = 0; p < pieces; ++p) fold_run(start + plan.reduced.offset(p), plan.run, accumulators + i);
      }
      finish(accumulators, n, position);
      position += n;
    }
  }

  // One output, cut into pieces.
  void in_one_run() const noexcept {
    const std::int64_t piece = std::max(kGrain, divide_up(plan.run, kMaxPieces));
    A partial[kMaxPieces];
    const std::int64_t pieces = divide_up(plan.run, piece);
    parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        partial[p] = identity;
        fold_run(p * piece, std::min(piece, plan.run - p * piece), partial + p);
      }
    });
    A total = identity;
    combine.run(partial, pieces, &total);
    finish(&total, 1, 0);
  }

  std::int64_t tiles() const noexcept { return divide_up(plan.columns, kFoldColumns); }

  void fold_tile(std::int64_t tile, std::int64_t first_row, std::int64_t rows, A* accumulators) const noexcept {
    const std::int64_t column = tile % tiles() * kFoldColumns;
    const std::int64_t columns = std::min(kFoldColumns, plan.columns - column);
    const std::int64_t start = plan.kept.offset(tile / tiles()) + column + first_row * plan.row_stride;
    std::fill_n(accumulators, columns, identity);
    for (std::int64_t p = 0, pieces = plan.reduced.count(); p < pieces; ++p)
      fold_rows(start + plan.reduced.offset(p), rows, columns, accumulators);
  }

  void finish_tile(std::int64_t tile, const A* accumulators) const noexcept {
    const std::int64_t column = tile % tiles() * kFoldColumns;
    finish(accumulators, std::min(kFoldColumns, plan.columns - column), tile / tiles() * plan.columns + column);
  }

  // One tile of columns, its rows cut into pieces.
  void in_one_tile() const noexcept {
    const std::int64_t piece = std::max(kGrain / plan.columns + 1, divide_up(plan.rows, kMaxPieces));
    A partial[kMaxPieces][kFoldColumns];
    const std::int64_t pieces = divide_up(plan.rows, piece);
    parallel_for(pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        fold_tile(0, p * piece, std::min(piece, plan.rows - p * piece), partial[p]);
    });
    A total[kFoldColumns];
    std::fill_n(total, plan.columns, identity);
    combine.rows(partial, pieces, kFoldColumns, plan.columns, total);
    finish_tile(0, total);
  }

  void by_tiles(std::int64_t begin, std::int64_t end) const noexcept {
    A accumulators[kFoldColumns];
    for (std::int64_t tile = begin; tile < end; ++tile) {
      fold_tile(tile, 0, plan.rows, accumulators);
      finish_tile(tile, accumulators);
    }
  }

  void run() const noexcept {
    const std::int64_t outputs = plan.kept.count();
    if (plan.inner_is_reduced) {
      if (outputs == 1 && plan.reduced.rank == 0 && plan.run > kGrain) return in_one_run();
      const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, folded));
      parallel_for(outputs, grain, [&](std::int64_t begin, std::int64_t end) { by_runs(begin, end); });
      return;
    }
    const std::int64_t count = outputs * tiles();
    if (count == 1 && plan.reduced.rank == 0 && plan.rows * plan.columns > kGrain) return in_one_tile();
    const std::int64_t work = std::max<std::int64_t>(1, folded * std::min(kFoldColumns, plan.columns));
    parallel_for(count, std::max<std::int64_t>(1, kGrain / work),
                 [&](std::int64_t begin, std::int64_t end) { by_tiles(begin, end); });
  }
};

template <class T>
T identity_of(Fold fold) noexcept {
  using Limits = std::numeric_limits<T>;
  if (fold == kFoldSum || fold == kFoldProduct) return fold == kFoldSum ? T(0) : T(1);
  if (fold == kFoldMax) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

// The identity as `dtype` has it: the lowest i8 is -128, though it is folded as i32.
template <class A>
A identity_of(Fold fold, DType dtype) noexcept {
  if (dtype == boolean) return A(fold == kFoldMin);
  if (is_floating(dtype)) return identity_of<A>(fold);
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) return static_cast<A>(identity_of<T>(fold));
    return A(0);
  });
}

// A reduction over the first or over the last axes: `folded` elements behind each of the outputs.
struct SimpleReduction {
  std::int64_t outputs, folded;
  bool over_last;
};

// Whether the axes have that form, with few enough elements for one thread.
bool is_simple(const Shape& shape, AxesMask axes, std::size_t elements, std::size_t outputs,
               SimpleReduction& simple) noexcept {
  if (elements == 0 || elements > static_cast<std::size_t>(kGrain)) return false;
  const AxesMask all = static_cast<AxesMask>((std::uint64_t{1} << shape.rank()) - 1), reduced = axes & all;
  const AxesMask kept = all & ~reduced;
  simple.outputs = static_cast<std::int64_t>(outputs);
  simple.folded = outputs == 1 ? static_cast<std::int64_t>(elements) : static_cast<std::int64_t>(elements / outputs);
  simple.over_last = outputs == 1 || (kept & (kept + 1)) == 0;  // The kept axes come first.
  return simple.over_last || ((reduced & (reduced + 1)) == 0 && outputs <= kFoldColumns);
}

template <class T, class A>
void reduce_simply(ReduceOp op, const T* x, const SimpleReduction& simple, const FoldLoops& loops, DType dtype,
                   T* out) noexcept {
  const A identity = identity_of<A>(fold_of(op), dtype);
  if (simple.over_last) {
    for (std::int64_t i = 0; i < simple.outputs; ++i) {
      A accumulator = identity;
      loops.run(x + i * simple.folded, simple.folded, &accumulator);
      out[i] = finished<T>(op, accumulator, simple.folded);
    }
    return;
  }
  A accumulators[kFoldColumns];
  std::fill_n(accumulators, simple.outputs, identity);
  loops.rows(x, simple.folded, simple.outputs, simple.outputs, accumulators);
  for (std::int64_t i = 0; i < simple.outputs; ++i) out[i] = finished<T>(op, accumulators[i], simple.folded);
}

template <class T, class A>
void reduce_as(ReduceOp op, const ConstTensorView& x, AxesMask axes, const TensorView& out,
               NativeType accumulators) noexcept {
  const DType dtype = x.dtype(), native = native_dtype(dtype);
  const Fold fold = fold_of(op);
  const FoldLoops& loops = reduce_loops().folds[fold][native_type(dtype)];
  if (SimpleReduction simple; native == dtype && is_simple(x.shape(), axes, x.size(), out.size(), simple))
    return reduce_simply<T, A>(op, reinterpret_cast<const T*>(x.bytes()), simple, loops, dtype,
                               reinterpret_cast<T*>(out.bytes()));
  const ReducePlan plan = plan_reduction(x.shape(), axes);
  const auto folded = plan.run * plan.rows * plan.reduced.count();
  const Reduction<T, A> reduction = {op,
                                     plan,
                                     x.bytes(),
                                     out.bytes(),
                                     dtype,
                                     folded,
                                     loops,
                                     reduce_loops().folds[fold][accumulators],
                                     native == dtype ? nullptr : cast_loop(dtype, native),
                                     native == dtype ? nullptr : cast_loop(native, dtype),
                                     identity_of<A>(fold, dtype)};
  reduction.run();
}

}  // namespace

bool is_supported(ReduceOp op, DType dtype) noexcept {
  if (op == ReduceOp::max || op == ReduceOp::min) return true;
  return (op == ReduceOp::any || op == ReduceOp::all) == (dtype == boolean);
}

void reduce(ReduceOp op, const ConstTensorView& x, AxesMask axes, const TensorView& out) noexcept {
  PLIMSOLL_CHECK(is_supported(op, x.dtype()));
  if (out.size() == 0) return;
  const bool extreme = fold_of(op) == kFoldMax || fold_of(op) == kFoldMin;
  switch (native_type(x.dtype())) {
    case kNativeF32:
      return extreme ? reduce_as<float, float>(op, x, axes, out, kNativeF32)
                     : reduce_as<float, double>(op, x, axes, out, kNativeF64);
    case kNativeF64:
      return reduce_as<double, double>(op, x, axes, out, kNativeF64);
    case kNativeI32:
      return extreme ? reduce_as<std::int32_t, std::int32_t>(op, x, axes, out, kNativeI32)
                     : reduce_as<std::int32_t, std::int64_t>(op, x, axes, out, kNativeI64);
    case kNativeI64:
      return reduce_as<std::int64_t, std::int64_t>(op, x, axes, out, kNativeI64);
    case kNativeBool:
      return reduce_as<std::uint8_t, std::uint8_t>(op, x, axes, out, kNativeBool);
    case kNumNative:
      break;
  }
}

}  // namespace plimsoll::internal
