// SparseParts: builds sparse tensors from parts known to be in order.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/sparse_products.h"
#include "plimsoll/ops/sparse_tensor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

class SparseParts {
 public:
  // Requires entries in row-major order, within the shape, each once.
  static SparseTensor coo(const Tensor& indices, const Tensor& values, const Shape& shape) {
    SparseTensor result;
    result.first_ = indices;
    result.values_ = values;
    result.shape_ = shape;
    return result;
  }
  static SparseTensor csr(const Tensor& splits, const Tensor& columns, const Tensor& values, const Shape& shape) {
    SparseTensor result = coo(splits, values, shape);
    result.columns_ = columns;
    return result;
  }
};

// An i64 tensor to be filled through its span.
inline Tensor new_indices(const Shape& shape, const Tensor& like, const char* op) {
  return make_tensor({.op = op}, shape, i64, device_of(like));
}
// Both throw Unsupported on devices that the host cannot access.
inline std::int64_t* filling(const Tensor& tensor) {
  require_host(tensor, "sparse");
  return writable(tensor).data<std::int64_t>();
}
inline const std::int64_t* reading(const Tensor& tensor) {
  require_host(tensor, "sparse");
  return tensor.view().data<std::int64_t>();
}

// Requires views of i64.
inline SparseRows sparse_rows(const ConstTensorView& splits, const ConstTensorView& columns, std::int64_t width) {
  return {splits.data<std::int64_t>(), columns.data<std::int64_t>(), splits.shape()[0] - 1, width};
}
inline SparseRows sparse_rows(const Tensor& splits, const Tensor& columns, std::int64_t width) {
  require_host(splits, "sparse");
  return sparse_rows(splits.view(), columns.view(), width);
}

inline void require_matrix(const SparseTensor& x, const char* where) {
  if (x.rank() != 2)
    throw InvalidArgument(fmt::format("{}: a sparse tensor of shape {} is not a matrix; give one of rank 2", where,
                                      x.shape().to_string()));
}
inline std::string coordinates_text(const std::int64_t* coordinates, std::size_t rank) {
  return fmt::format("[{}]", fmt::join(coordinates, coordinates + rank, ", "));
}

// Values added up at positions 0 ... count - 1.
Tensor sum_at(const Tensor& values, const Tensor& positions, std::int64_t count);

}  // namespace plimsoll::internal
