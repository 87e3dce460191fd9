#include "plimsoll/ops/check_indices.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

std::string position_text(std::int64_t position, const Shape& shape) {
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    text = fmt::format("{}{}{}", position % shape[axis], text.empty() ? "" : ", ", text);
    position /= shape[axis];
  }
  return "[" + text + "]";
}

}  // namespace

void require_tensor(const Tensor& tensor, const char* where, const char* argument) {
  if (tensor.is_empty_handle()) refuse_disposed(tensor, where, argument);
}

void require_index_dtype(DType dtype, const char* where, const char* argument) {
  if (dtype != i32 && dtype != i64)
    throw InvalidArgument(
        fmt::format("{}: {} are {}; cast them to int32 or int64", where, argument, dtype_name(dtype)));
}

std::int64_t find_bad_index(const Tensor& indices, std::int64_t size, const char* where, const char* argument) {
  if (indices.is_empty_handle() || indices.is_disposed()) refuse_disposed(indices, where, argument);
  require_index_dtype(indices.dtype(), where, argument);
  if (is_symbolic(indices)) return -1;  // Checked when the graph runs.
  return first_bad_index(HostRead(indices), size);
}

namespace {

[[noreturn]] void refuse_index(const ConstTensorView& view, std::int64_t position, std::int64_t size, const char* where,
                               const std::string& range) {
  const std::int64_t index =
      view.dtype() == i64 ? view.data<std::int64_t>()[position] : view.data<std::int32_t>()[position];
  throw InvalidArgument(
      fmt::format("{}: index {} at position {} of the indices {} is outside of {}; {}", where, index,
                  position_text(position, view.shape()), view.shape().to_string(), range,
                  size == 0 ? "there is nothing to choose from" : fmt::format("use 0 to {}", size - 1)));
}

}  // namespace

void refuse_index(const Tensor& indices, std::int64_t position, std::int64_t size, const char* where,
                  const std::string& range) {
  refuse_index(HostRead(indices), position, size, where, range);
}

void check_indices(const Tensor& indices, const Shape& of, std::size_t axis, const char* where) {
  const std::int64_t bad = find_bad_index(indices, of[axis], where);
  if (bad >= 0) [[unlikely]]
    refuse_index(indices, bad, of[axis], where,
                 fmt::format("axis {} of shape {}, of size {}", axis, of.to_string(), of[axis]));
}

void check_indices(const ConstTensorView& indices, const Shape& of, std::size_t axis, const char* where) {
  const std::int64_t bad = first_bad_index(indices, of[axis]);
  if (bad >= 0) [[unlikely]]
    refuse_index(indices, bad, of[axis], where,
                 fmt::format("axis {} of shape {}, of size {}", axis, of.to_string(), of[axis]));
}

}  // namespace plimsoll::internal
