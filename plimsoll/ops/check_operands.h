// Checks of operands that several ops share, and the texts of their errors.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// All throw InvalidArgument that begins with the op's name.
void require_same_dtype(const Op& op, const Specs& in, std::size_t first = 0);
void require_floating(const Op& op, DType dtype);
void require_rank_at_least(const Op& op, const Shape& shape, std::size_t rank);
[[noreturn]] void refuse_dtype(const Op& op, DType dtype);

}  // namespace plimsoll::internal
