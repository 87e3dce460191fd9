// SparseTensor: a tensor that stores only some of its elements, the entries; all others are zero.
//
//   SparseTensor s(constant({{0, 1}, {2, 0}}), constant({5.f, 7.f}), {3, 2});    // indices, values, shape: COO
//   SparseTensor m = SparseTensor::from_csr(constant({0, 1, 1, 2}), constant({1, 0}), constant({5.f, 7.f}), {3, 2});
//   SparseTensor d = sparse_from_dense(x);
//   s.to_dense(); s.sum({1}); s.slice_rows(1, 2); s.with_values(relu(s.values()));
//
// Two formats. COO: i64 indices [entries, rank] and values [entries], for any rank from 1. CSR, for matrices: i64 row
// splits [rows + 1], columns [entries] and values. In both, entries are in row-major order, each place at most once, so
// that a conversion shares the values. Entries may be zero.
// The parts are ordinary tensors, counted, tidied and disposed of as such; a copy is the same sparse tensor. Gradients
// flow to values(): watch that tensor, or one it was made from. Products and sums are in sparse_math.h.
// Throws InvalidArgument that names the entry and its numbers, Disposed, OutOfMemory; then nothing has changed.
// Thread safety: as for tensors. Cost: making one from ordered entries reads them once; otherwise it sorts.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class SparseParts;
}  // namespace internal

enum class SparseFormat : unsigned char { coo, csr };
enum class Duplicates : unsigned char { refuse, sum };  // What to do with several entries at one place.

struct SparseOptions {
  Duplicates duplicates = Duplicates::refuse;
};

class PLIMSOLL_API SparseTensor {
 public:
  // Indices are i32 or i64 [entries, rank], in any order. When they are ordered, the parts share the same buffers.
  SparseTensor(const Tensor& indices, const Tensor& values, const Shape& shape, SparseOptions options = {});
  // Columns may be in any order within their row.
  static SparseTensor from_csr(const Tensor& row_splits, const Tensor& columns, const Tensor& values,
                               const Shape& shape, SparseOptions options = {});

  const Shape& shape() const noexcept { return shape_; }  // As if it were dense.
  std::size_t rank() const noexcept { return shape_.rank(); }
  DType dtype() const noexcept { return values_.dtype(); }
  std::int64_t num_entries() const noexcept { return static_cast<std::int64_t>(values_.size()); }
  std::size_t nbytes() const noexcept { return values_.nbytes() + first_.nbytes() + columns_.nbytes(); }
  std::string device() const { return values_.device(); }
  SparseFormat format() const noexcept { return columns_.is_empty_handle() ? SparseFormat::coo : SparseFormat::csr; }

  const Tensor& values() const noexcept { return values_; }
  // Computed when the tensor has the other format; row splits and columns exist for matrices.
  Tensor indices() const;
  Tensor row_splits() const;
  Tensor columns() const;
  SparseTensor to_coo() const;
  SparseTensor to_csr() const;  // Convert once before many products.

  // The same places with other values, of any dtype. Throws InvalidArgument unless they are [num_entries()].
  SparseTensor with_values(const Tensor& values) const;
  SparseTensor cast(DType dtype) const { return with_values(values_.cast(dtype)); }
  Tensor to_dense() const;

  SparseTensor slice_rows(std::int64_t begin, std::int64_t count) const;  // Along the first axis; -1: to the end.
  SparseTensor transpose(const std::vector<std::int64_t>& permutation = {}) const;  // None: the axes in reverse.

  // Dense results, as for to_dense(): zeros that are not stored count. sum: not for booleans; mean: for floats.
  Tensor sum(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor mean(const Axes& axes = {}, ReduceOptions options = {}) const;
  Tensor max(const Axes& axes = {}, ReduceOptions options = {}) const;

  void dispose() const noexcept;
  bool is_disposed() const noexcept { return values_.is_disposed(); }

  // Lets tidy, dispose and others find the tensors inside.
  template <class F>
  friend void visit_tensors(const SparseTensor& sparse, F&& f) {
    f(sparse.values_);
    f(sparse.first_);
    if (!sparse.columns_.is_empty_handle()) f(sparse.columns_);
  }

 private:
  friend class internal::SparseParts;
  SparseTensor() = default;

  Tensor first_;    // Indices, or row splits.
  Tensor columns_;  // Of CSR.
  Tensor values_;
  Shape shape_;
};

// The nonzero elements; a matrix as CSR, others as COO. Gradients flow to x. Throws InvalidArgument for a scalar.
PLIMSOLL_API SparseTensor sparse_from_dense(const Tensor& x);

// <SparseTensor: shape=(3, 2), dtype=float32, device=CPU:0, format=csr, entries=2>
PLIMSOLL_API std::string to_string(const SparseTensor& sparse);
PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const SparseTensor& sparse);

}  // namespace plimsoll
