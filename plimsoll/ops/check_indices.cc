#include "plimsoll/ops/check_indices.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/make_tensor.h"

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

namespace {

std::string axis_text(const IndexRule& rule, const Shape& indices, std::int64_t position, std::int64_t index) {
  return index_text(rule, indices, position, index,
                    fmt::format("axis {} of shape {}, of size {}", rule.axis, rule.of.to_string(), rule.size));
}

}  // namespace

std::string index_text(const IndexRule& rule, const Shape& indices, std::int64_t position, std::int64_t index,
                       const std::string& range) {
  return fmt::format("{}: index {} at position {} of the indices {} is outside of {}; {}", rule.where, index,
                     position_text(position, indices), indices.to_string(), range,
                     rule.size == 0 ? "there is nothing to choose from" : fmt::format("use 0 to {}", rule.size - 1));
}

IndexRule axis_rule(std::size_t input, const Shape& of, std::size_t axis, const char* where) {
  return {.input = input, .size = of[axis], .where = where, .what = "", .of = of, .axis = axis, .text = axis_text};
}

void check_indices(const Tensor& indices, const IndexRule& rule, const char* argument) {
  if (indices.is_empty_handle() || indices.is_disposed()) refuse_disposed(indices, rule.where, argument);
  require_index_dtype(indices.dtype(), rule.where, argument);
  check_indices(indices, rule);
}

}  // namespace plimsoll::internal
