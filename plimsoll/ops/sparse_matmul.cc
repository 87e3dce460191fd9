// Products of sparse matrices with dense and sparse ones.
#include "plimsoll/kernels/movement.h"
#include "plimsoll/kernels/sparse.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/sparse_parts.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/ops/sparse_math.h"

namespace plimsoll {
namespace {

constexpr const char* kSparseMatmul = "sparse_matmul";

// Operands of both: values or nothing, then row splits and columns of a matrix [rows, width].
struct MatrixSize {
  std::int64_t rows, width;
  bool operator==(const MatrixSize&) const = default;
};

// a b, or with a transposed. Operands: a's values, row splits, columns; b.
class SparseTimesDense final : public OpOf<SparseTimesDense> {
 public:
  SparseTimesDense(MatrixSize size, bool transposed) noexcept : size_(size), transposed_(transposed) {}
  const char* name() const noexcept override { return kSparseMatmul; }
  std::string input_name(std::size_t input) const override {
    constexpr const char* kNames[] = {"the values", "the row splits", "the columns", "the dense operand"};
    return kNames[input];
  }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& b = in.shape(3);
    const std::int64_t inner = transposed_ ? size_.rows : size_.width, rows = transposed_ ? size_.width : size_.rows;
    if (in.dtype(0) != in.dtype(3))
      throw InvalidArgument(fmt::format("{}: the sparse operand is {}, the dense one {}; cast one of them",
                                        kSparseMatmul, dtype_name(in.dtype(0)), dtype_name(in.dtype(3))));
    if (!is_sparse_product_dtype(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
    if (b.rank() != 2 || !may_equal(b[0], inner))
      throw InvalidArgument(fmt::format("{}: inner sizes differ: sparse [{}, {}] has {}, dense {}{}", kSparseMatmul,
                                        rows, inner, inner, b.to_string(),
                                        b.rank() == 2 ? fmt::format(" has {}", b[0]) : " is not a matrix"));
    out.add({rows, b[1]}, in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    if (!transposed_) return 0;
    const std::size_t entries = in.shape(0).size();
    return scratch_bytes(i64, static_cast<std::size_t>(size_.width) + 1) + 2 * scratch_bytes(i64, entries) +
           scratch_bytes(in.dtype(0), entries);
  }
  void run(const OpRun& run) const noexcept override {
    const SparseRows a = sparse_rows(run.in[1], run.in[2], size_.width);
    if (!transposed_) return internal::sparse_matmul(a, run.in[0], run.in[3], run.out[0]);
    const Shape& entries = run.in[0].shape();
    ScratchViews scratch(run.scratch);
    const TensorView splits = scratch.take(i64, {size_.width + 1}), columns = scratch.take(i64, entries),
                     order = scratch.take(i64, entries), values = scratch.take(run.in[0].dtype(), entries);
    sparse_transpose(a, splits.data<std::int64_t>(), columns.data<std::int64_t>(), order.data<std::int64_t>());
    internal::gather(run.in[0], order, 0, values);
    internal::sparse_matmul(sparse_rows(splits, columns, size_.rows), values, run.in[3], run.out[0]);
  }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs =
                slot(1) | slot(2) | ((wanted & slot(3)) != 0 ? slot(0) : 0) | ((wanted & slot(0)) != 0 ? slot(3) : 0)};
  }
  void gradient(GradientContext& c) const override;
  bool operator==(const SparseTimesDense&) const = default;

 private:
  MatrixSize size_;
  bool transposed_;
};

// For each entry of a matrix the product of row i of x and row j of y. Operands: row splits, columns, x, y.
class SparseRowDots final : public OpOf<SparseRowDots> {
 public:
  explicit SparseRowDots(MatrixSize size) noexcept : size_(size) {}
  const char* name() const noexcept override { return "sparse_row_dots"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(1), in.dtype(2)); }
  void run(const OpRun& run) const noexcept override {
    sparse_row_dots(sparse_rows(run.in[0], run.in[1], size_.width), run.in[2], run.in[3], run.out[0]);
  }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs =
                slot(0) | slot(1) | ((wanted & slot(2)) != 0 ? slot(3) : 0) | ((wanted & slot(3)) != 0 ? slot(2) : 0)};
  }
  void gradient(GradientContext& c) const override {
    for (const std::size_t to : {std::size_t{2}, std::size_t{3}})
      if (c.wants(to))
        c.give(to, execute(SparseTimesDense(size_, to == 3), c.grad(), c.input(0), c.input(1), c.input(5 - to)));
  }
  bool operator==(const SparseRowDots&) const = default;

 private:
  MatrixSize size_;
};

void SparseTimesDense::gradient(GradientContext& c) const {
  const Tensor& g = c.grad();
  if (c.wants(3)) c.give(3, execute(SparseTimesDense(size_, !transposed_), c.input(0), c.input(1), c.input(2), g));
  if (!c.wants(0)) return;
  const Tensor &x = transposed_ ? c.input(3) : g, &y = transposed_ ? g : c.input(3);
  c.give(0, execute(SparseRowDots(size_), c.input(1), c.input(2), x, y));
}

// One slope of the sum of a[i, j] b[j, k] c[i, k]; for c that is a b. Operands: the values of the two others, then row
// splits and columns of a, b and c.
class SparseTimesSparse final : public OpOf<SparseTimesSparse> {
 public:
  SparseTimesSparse(SparseFactor of, std::int64_t inner, std::int64_t width) noexcept
      : of_(of), inner_(inner), width_(width) {}
  const char* name() const noexcept override { return kSparseMatmul; }
  void infer(const Specs& in, SpecList& out) const override {
    require_factors(in);
    out.add(in.shape(3 + 2 * static_cast<std::size_t>(of_)), in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    return sparse_triple_scratch_bytes(in.shape(2)[0] - 1, width_);
  }
  void run(const OpRun& run) const noexcept override {
    const SparseTriple triple = {sparse_rows(run.in[2], run.in[3], inner_), sparse_rows(run.in[4], run.in[5], width_),
                                 sparse_rows(run.in[6], run.in[7], width_)};
    sparse_triple(of_, triple, run.in[0], run.in[1], run.out[0], run.scratch);
  }
  SavedSlots saved(SlotMask wanted) const override {
    SlotMask inputs = 0xfc;  // The structure.
    if ((wanted & slot(0)) != 0) inputs |= slot(1);
    if ((wanted & slot(1)) != 0) inputs |= slot(0);
    return {.inputs = inputs};
  }
  void gradient(GradientContext& c) const override {
    for (std::size_t to = 0; to < 2; ++to) {
      if (!c.wants(to)) continue;
      const std::size_t factor = factor_of(to), other = factor_of(1 - to), here = static_cast<std::size_t>(of_);
      // The two that are not wanted, in order: ours, whose gradient is known, and the other operand.
      const Tensor &p = here < other ? c.grad() : c.input(1 - to), &q = here < other ? c.input(1 - to) : c.grad();
      c.give(to, execute(SparseTimesSparse(static_cast<SparseFactor>(factor), inner_, width_), p, q, c.input(2),
                         c.input(3), c.input(4), c.input(5), c.input(6), c.input(7)));
    }
  }
  bool operator==(const SparseTimesSparse&) const = default;

 private:
  // Which of a, b and c an operand is.
  std::size_t factor_of(std::size_t operand) const noexcept {
    return operand + (operand >= static_cast<std::size_t>(of_) ? 1 : 0);
  }
  void require_factors(const Specs& in) const {
    if (in.dtype(0) != in.dtype(1))
      throw InvalidArgument(fmt::format("{}: one sparse operand is {}, the other {}; cast one of them", kSparseMatmul,
                                        dtype_name(in.dtype(0)), dtype_name(in.dtype(1))));
    if (!is_sparse_product_dtype(in.dtype(0))) refuse_dtype(*this, in.dtype(0));
  }

  SparseFactor of_;
  std::int64_t inner_, width_;
};

}  // namespace

Tensor sparse_matmul(const SparseTensor& a, const Tensor& b, MatmulOptions options) {
  require_matrix(a, kSparseMatmul);
  require_tensor(b, kSparseMatmul, "the dense operand");
  if (b.rank() == 1) {
    const Tensor column = sparse_matmul(a, b.expand_dims(1), {.transpose_a = options.transpose_a});
    return column.reshape({column.size()});
  }
  if (options.transpose_b) return sparse_matmul(a, b.transpose(), {.transpose_a = options.transpose_a});
  if (is_half(a.dtype()) && b.dtype() == a.dtype())
    return sparse_matmul(a.cast(f32), b.cast(f32), options).cast(a.dtype());
  return execute(SparseTimesDense({a.shape()[0], a.shape()[1]}, options.transpose_a), a.values(), a.row_splits(),
                 a.columns(), b);
}

// The transpose of b' a'.
Tensor sparse_matmul(const Tensor& a, const SparseTensor& b, MatmulOptions options) {
  require_tensor(a, kSparseMatmul, "the dense operand");
  const bool flips = !options.transpose_b;
  if (a.rank() == 1) return sparse_matmul(b, a, {.transpose_a = flips});
  return sparse_matmul(b, a, {.transpose_a = flips, .transpose_b = !options.transpose_a}).transpose();
}

SparseTensor sparse_matmul(const SparseTensor& a, const SparseTensor& b, MatmulOptions options) {
  require_matrix(a, kSparseMatmul);
  require_matrix(b, kSparseMatmul);
  if (options.transpose_a) return sparse_matmul(a.transpose(), b, {.transpose_b = options.transpose_b});
  if (options.transpose_b) return sparse_matmul(a, b.transpose());
  if (a.shape()[1] != b.shape()[0])
    throw InvalidArgument(fmt::format("{}: inner sizes differ: left sparse {} has {}, right sparse {} has {}",
                                      kSparseMatmul, a.shape().to_string(), a.shape()[1], b.shape().to_string(),
                                      b.shape()[0]));
  if (is_half(a.dtype()) && b.dtype() == a.dtype()) return sparse_matmul(a.cast(f32), b.cast(f32)).cast(a.dtype());
  const SparseTensor left = a.to_csr(), right = b.to_csr();
  const std::int64_t rows = a.shape()[0], inner = a.shape()[1], width = b.shape()[1];
  const SparseRows x = sparse_rows(left.row_splits(), left.columns(), inner),
                   y = sparse_rows(right.row_splits(), right.columns(), width);
  const Tensor marks = new_indices({width}, a.values(), kSparseMatmul),
               splits = new_indices({rows + 1}, a.values(), kSparseMatmul);
  sparse_product_splits(x, y, filling(marks), filling(splits));
  const Tensor columns = new_indices({reading(splits)[rows]}, a.values(), kSparseMatmul);
  sparse_product_columns(x, y, filling(marks), reading(splits), filling(columns));
  marks.dispose();
  const Tensor values =
      execute(SparseTimesSparse(SparseFactor::c, inner, width), left.values(), right.values(), left.row_splits(),
              left.columns(), right.row_splits(), right.columns(), splits, columns);
  return SparseParts::csr(splits, columns, values, {rows, width});
}

}  // namespace plimsoll
