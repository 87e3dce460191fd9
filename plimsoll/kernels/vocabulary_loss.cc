#include "plimsoll/kernels/vocabulary_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/loss_loops.h"
#include "plimsoll/kernels/internal/matmul_product.h"
#include "plimsoll/kernels/internal/reduce_loops.h"
#include "plimsoll/kernels/matmul.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kFewestClasses = 2 * kFoldColumns;  // Sums over columns of fewer are split by rows.
constexpr std::int64_t kSlices = 64;                       // About so many.
constexpr std::int64_t kFewestRows = 64;                   // Of a slice: w is read once for each.
constexpr std::int64_t kGrain = 8192;                      // Elements per chunk.

// The three products of a step, without addresses: logits, and the gradients of x and w.
MatmulProduct logits_of(const VocabularySizes& s, DType dtype, std::int64_t columns) noexcept {
  return {.source = dtype,
          .m = s.rows,
          .n = columns,
          .k = s.inner,
          .a = nullptr,
          .b = nullptr,
          .a_row = s.inner,
          .a_column = 1,
          .b_row = s.classes,
          .b_column = 1,
          .c = nullptr,
          .c_row = columns,
          .accumulate = false};
}
MatmulProduct weights_of(const VocabularySizes& s, DType dtype, std::int64_t columns) noexcept {
  return {.source = dtype,
          .m = s.inner,
          .n = columns,
          .k = s.rows,
          .a = nullptr,
          .b = nullptr,
          .a_row = 1,
          .a_column = s.inner,
          .b_row = columns,
          .b_column = 1,
          .c = nullptr,
          .c_row = s.classes,
          .accumulate = false};
}
MatmulProduct inputs_of(const VocabularySizes& s, DType dtype, std::int64_t columns, std::int64_t depth) noexcept {
  return {.source = dtype,
          .m = s.rows,
          .n = s.inner,
          .k = depth,
          .a = nullptr,
          .b = nullptr,
          .a_row = columns,
          .a_column = 1,
          .b_row = 1,
          .b_column = s.classes,
          .c = nullptr,
          .c_row = s.inner,
          .accumulate = true};
}

// How columns are cut: where the product with w, transposed, splits its sums.
struct Columns {
  std::int64_t depth, width;  // A panel has `width`, a multiple of `depth`.

  explicit Columns(const VocabularySizes& s) noexcept
      : depth(matmul_depth(s.classes)), width(depth * divide_up(divide_up(s.classes, depth), kSlices)) {}
};

std::int64_t rows_of_slice(const VocabularySizes& s) noexcept {
  return std::min(divide_up(s.rows, 2), std::max(kFewestRows, divide_up(s.rows, kSlices)));
}

std::size_t panel_bytes(std::int64_t rows, std::int64_t columns, DType dtype) noexcept {
  return round_up(static_cast<std::size_t>(rows * columns) * size_of(dtype), 64);
}

VocabularySizes sizes_of(const VocabularyOperands& in) noexcept {
  return {in.x.shape()[0], in.x.shape()[1], in.w.shape()[1]};
}

std::int64_t label_at(const ConstTensorView& labels, std::int64_t row) noexcept {
  return labels.dtype() == i32 ? labels.data<std::int32_t>()[row] : labels.data<std::int64_t>()[row];
}

template <class T>
constexpr NativeType kNativeOf = std::is_same_v<T, float> ? kNativeF32 : kNativeF64;

// The losses of rows [first, first + logits' rows), and what the gradient needs of each: the largest logit and the sum
// of exponentials.
template <class T>
void finish_rows(const ConstTensorView& logits, std::int64_t first, const ConstTensorView& labels,
                 const VocabularyResults& out) noexcept {
  const std::int64_t n = logits.shape().back(), rows = logits.shape()[0];
  T* const losses = out.losses.data<T>();
  double* const statistics = out.statistics.data<double>();
  std::int64_t* const best = out.best.base() ? out.best.data<std::int64_t>() : nullptr;
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const x = logits.data<T>() + r * n;
      const std::int64_t row = first + r, label = label_at(labels, row);
      T largest = -std::numeric_limits<T>::infinity();
      reduce_loops().folds[kFoldMax][kNativeOf<T>].run(x, n, &largest);
      const double sum = loss_loops_of<T>().exp_sum(x, n, largest, nullptr);
      statistics[2 * row] = static_cast<double>(largest);
      statistics[2 * row + 1] = sum;
      if (best) best[row] = reduce_loops().largest[kNativeOf<T>].run(x, n);
      losses[row] = label < 0 || label >= n ? std::numeric_limits<T>::quiet_NaN()
                                            : static_cast<T>(std::log(sum) - double(x[label] - largest));
    }
  });
}

// Logits of columns [first, first + panel's columns) become their gradients.
template <class T>
void slope_columns(const TensorView& panel, std::int64_t first, std::int64_t classes, const ConstTensorView& labels,
                   const ConstTensorView& statistics, const ConstTensorView& upstream) noexcept {
  const std::int64_t n = panel.shape()[1];
  const double* const of_rows = statistics.data<double>();
  parallel_for(panel.shape()[0], std::max<std::int64_t>(1, kGrain / n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      T* const x = panel.data<T>() + r * n;
      const std::int64_t label = label_at(labels, r);
      if (label < 0 || label >= classes) {
        std::fill_n(x, n, std::numeric_limits<T>::quiet_NaN());
        continue;
      }
      const double weight = double(upstream.data<T>()[r]);
      loss_loops_of<T>().exp_sum(x, n, static_cast<T>(of_rows[2 * r]), x);
      loss_loops_of<T>().scale_minus(x, nullptr, n, static_cast<T>(weight / of_rows[2 * r + 1]), T(0));
      if (label >= first && label < first + n) x[label - first] -= static_cast<T>(weight);
    }
  });
}

template <class T>
void sum_columns(const ConstTensorView& panel, T* out) noexcept {
  const std::int64_t rows = panel.shape()[0], n = panel.shape()[1];
  parallel_for(divide_up(n, kFoldColumns), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t column = tile * kFoldColumns, columns = std::min(kFoldColumns, n - column);
      double sums[kFoldColumns] = {};
      reduce_loops().folds[kFoldSum][kNativeOf<T>].rows(panel.data<T>() + column, rows, n, columns, sums);
      for (std::int64_t i = 0; i < columns; ++i) out[column + i] = static_cast<T>(sums[i]);
    }
  });
}

template <class T>
void gradient_of(const VocabularyOperands& in, const ConstTensorView& statistics, const ConstTensorView& upstream,
                 const VocabularyGradients& out, std::span<std::byte> scratch) noexcept {
  const VocabularySizes s = sizes_of(in);
  const DType dtype = in.x.dtype();
  const Columns cut(s);
  const auto element = static_cast<std::int64_t>(sizeof(T));
  std::byte* const packed = scratch.data() + panel_bytes(s.rows, cut.width, dtype);
  for (std::int64_t first = 0; first < s.classes; first += cut.width) {
    const std::int64_t columns = std::min(cut.width, s.classes - first);
    const TensorView panel(scratch.data(), 0, dtype, {s.rows, columns});
    MatmulProduct logits = logits_of(s, dtype, columns);
    logits.a = in.x.bytes(), logits.b = in.w.bytes() + first * element, logits.c = panel.bytes();
    if (in.bias) {
      logits.finish.add = loops().binary[static_cast<std::size_t>(BinaryOp::add)][kNativeOf<T>][0];
      logits.finish.bias = in.bias->bytes() + first * element;
    }
    logits.multiply_packed(packed);
    slope_columns<T>(panel, first, s.classes, in.labels, statistics, upstream);
    if (out.db.base()) sum_columns<T>(panel, out.db.data<T>() + first);
    MatmulProduct weights = weights_of(s, dtype, columns);
    weights.a = in.x.bytes(), weights.b = panel.bytes(), weights.c = out.dw.bytes() + first * element;
    weights.multiply_packed(packed);
    if (!out.dx.base()) continue;
    for (std::int64_t part = 0; part < columns; part += cut.depth) {
      MatmulProduct inputs = inputs_of(s, dtype, columns, std::min(cut.depth, columns - part));
      inputs.a = panel.bytes() + part * element, inputs.b = in.w.bytes() + (first + part) * element;
      inputs.c = out.dx.bytes();
      inputs.accumulate = first + part > 0;
      inputs.multiply_packed(packed);
    }
  }
}

}  // namespace

bool is_sliceable(const VocabularySizes& s, DType dtype) noexcept {
  if ((dtype != f32 && dtype != f64) || s.classes < kFewestClasses || s.rows < 2 || s.inner < 1) return false;
  const auto is_alike = [](const MatmulProduct& x) { return !x.is_direct() || matmul_depth(x.k) == x.k; };
  return is_alike(logits_of(s, dtype, s.classes)) && is_alike(weights_of(s, dtype, s.classes)) &&
         is_alike(inputs_of(s, dtype, s.classes, s.classes)) && Columns(s).width < s.classes;
}

std::size_t vocabulary_loss_scratch_bytes(const VocabularySizes& s, DType dtype) noexcept {
  const std::int64_t rows = rows_of_slice(s), last = s.rows % rows == 0 ? rows : s.rows % rows;
  const auto packed = [&](std::int64_t count) {
    return matmul_scratch_bytes({count, s.inner}, {s.inner, s.classes}, dtype, {.part_of_rows = s.rows});
  };
  return panel_bytes(rows, s.classes, dtype) + std::max(packed(rows), packed(last));
}

void vocabulary_loss(const VocabularyOperands& in, const VocabularyResults& out,
                     std::span<std::byte> scratch) noexcept {
  const VocabularySizes s = sizes_of(in);
  const DType dtype = in.x.dtype();
  PLIMSOLL_CHECK(scratch.size() >= vocabulary_loss_scratch_bytes(s, dtype));
  const std::int64_t rows = rows_of_slice(s);
  const std::size_t panel = panel_bytes(rows, s.classes, dtype);
  for (std::int64_t begin = 0; begin < s.rows; begin += rows) {
    const std::int64_t end = std::min(s.rows, begin + rows);
    const TensorView logits(scratch.data(), 0, dtype, {end - begin, s.classes});
    matmul(in.x.rows(begin, end), in.w, logits, {.part_of_rows = s.rows}, scratch.subspan(panel), {.bias = in.bias});
    if (dtype == f32)
      finish_rows<float>(logits, begin, in.labels, out);
    else
      finish_rows<double>(logits, begin, in.labels, out);
  }
}

std::size_t vocabulary_gradient_scratch_bytes(const VocabularySizes& s, DType dtype) noexcept {
  const Columns cut(s);
  std::size_t packed = 0;
  for (const std::int64_t columns : {std::min(cut.width, s.classes), s.classes % cut.width}) {
    if (columns == 0) continue;
    packed =
        std::max({packed, logits_of(s, dtype, columns).packed_bytes(), weights_of(s, dtype, columns).packed_bytes(),
                  inputs_of(s, dtype, columns, std::min(cut.depth, columns)).packed_bytes()});
    if (columns % cut.depth != 0)
      packed = std::max(packed, inputs_of(s, dtype, columns, columns % cut.depth).packed_bytes());
  }
  return panel_bytes(s.rows, cut.width, dtype) + packed;
}

void vocabulary_loss_gradient(const VocabularyOperands& in, const ConstTensorView& statistics,
                              const ConstTensorView& upstream, const VocabularyGradients& out,
                              std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(scratch.size() >= vocabulary_gradient_scratch_bytes(sizes_of(in), in.x.dtype()));
  if (in.x.dtype() == f32)
    gradient_of<float>(in, statistics, upstream, out, scratch);
  else
    gradient_of<double>(in, statistics, upstream, out, scratch);
}

}  // namespace plimsoll::internal
