// Rows of different lengths, one after the other: softmax over each, padding to one length and back.
//
//   pad_rows(values, splits, out);       // values [total, ...], out [rows, width, ...]: a row's first `width`
//   unpad_rows(padded, splits, out);     // the reverse
//
// Row r is values[splits[r] ... splits[r + 1] - 1]. All dtypes unless stated. Thread safety: any thread. Cost: no
// allocation, never throws; results do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// Over each run of equal numbers in `rows`, which increase. Floats only.
PLIMSOLL_API void softmax_runs(const ConstTensorView& values, const ConstTensorView& rows,
                               const TensorView& out) noexcept;

// `padding` has the bytes of one element in its low ones.
PLIMSOLL_API void pad_rows(const ConstTensorView& values, const ConstTensorView& splits, std::uint64_t padding,
                           const TensorView& out) noexcept;
// Elements of rows that are longer than the padded ones are cleared.
PLIMSOLL_API void unpad_rows(const ConstTensorView& padded, const ConstTensorView& splits,
                             const TensorView& out) noexcept;

}  // namespace plimsoll::internal
