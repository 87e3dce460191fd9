#include "plimsoll/ops/check_operands.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {

void require_same_dtype(const Op& op, const Specs& in, std::size_t first) {
  for (std::size_t i = first + 1; i < in.size(); ++i)
    if (in.dtype(i) != in.dtype(first)) [[unlikely]]
      throw InvalidArgument(fmt::format("{}: {} {} is {}, {} {} is {}; cast one with .cast()", op.name(),
                                        op.input_name(first), in.shape(first).to_string(), dtype_name(in.dtype(first)),
                                        op.input_name(i), in.shape(i).to_string(), dtype_name(in.dtype(i))));
}

void require_floating(const Op& op, DType dtype) {
  if (!is_floating(dtype)) [[unlikely]]
    refuse_dtype(op, dtype);
}

void require_rank_at_least(const Op& op, const Shape& shape, std::size_t rank) {
  if (shape.rank() < rank) [[unlikely]]
    throw InvalidArgument(fmt::format("{}: shape {} has {} axes; at least {} are needed", op.name(), shape.to_string(),
                                      shape.rank(), rank));
}

void refuse_dtype(const Op& op, DType dtype) {
  throw InvalidArgument(
      fmt::format("{}: is not defined for {}; cast the operand to another dtype first", op.name(), dtype_name(dtype)));
}

}  // namespace plimsoll::internal
