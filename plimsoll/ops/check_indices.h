// Checks of indices, the only operands whose values decide whether an op can run. All throw InvalidArgument that begins
// with `where`, and Disposed.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Refuses an empty handle, for functions that read a tensor before execute() checks it.
void require_tensor(const Tensor& tensor, const char* where, const char* argument = "x");

// Indices are int32 or int64.
void require_index_dtype(DType dtype, const char* where, const char* argument = "indices");

// The position of the first of `indices` that is not in [0, size), or -1. Cost: reads them once.
std::int64_t find_bad_index(const Tensor& indices, std::int64_t size, const char* where,
                            const char* argument = "indices");
// "where: index 7 at position [1, 0] of indices [2, 3] is outside `range`; use 0 to 4".
[[noreturn]] void refuse_index(const Tensor& indices, std::int64_t position, std::int64_t size, const char* where,
                               const std::string& range);

// Both checks, for rows or other positions along an axis of a tensor called `of`.
void check_indices(const Tensor& indices, const Shape& of, std::size_t axis, const char* where);
// The same for a graph's values, when it runs.
void check_indices(const ConstTensorView& indices, const Shape& of, std::size_t axis, const char* where);

}  // namespace plimsoll::internal
