// Checks of indices, the only operands whose values decide whether an op can run. All throw InvalidArgument that begins
// with `where`, and Disposed.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Refuses an empty handle, for functions that read a tensor before execute() checks it.
void require_tensor(const Tensor& tensor, const char* where, const char* argument = "x");

// Indices are int32 or int64.
void require_index_dtype(DType dtype, const char* where, const char* argument = "indices");

// Of rows or other positions along an axis of a tensor of this shape; for Op::index_rule().
IndexRule axis_rule(std::size_t input, const Shape& of, std::size_t axis, const char* where);

// "where: index 7 at position [1, 0] of the indices [2, 3] is outside of `range`; use 0 to 4".
std::string index_text(const IndexRule& rule, const Shape& indices, std::int64_t position, std::int64_t index,
                       const std::string& range);

// Disposed tensors, the dtype, then this rule. `where` and `argument` live as long as the program.
void check_indices(const Tensor& indices, const IndexRule& rule, const char* argument);
inline void check_indices(const Tensor& indices, const Shape& of, std::size_t axis, const char* where) {
  check_indices(indices, axis_rule(0, of, axis, where), "indices");
}

}  // namespace plimsoll::internal
