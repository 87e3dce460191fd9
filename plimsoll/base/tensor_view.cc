#include "plimsoll/base/tensor_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plimsoll/base/error.h"

namespace plimsoll::tensor_view_detail {

void refuse_dtype(DType asked, DType actual) {
  throw InvalidArgument(
      fmt::format("view: asked for {} but the elements are {}; cast first", dtype_name(asked), dtype_name(actual)));
}

void refuse_reshape(const Shape& from, const Shape& to) {
  throw InvalidArgument(fmt::format("reshape: {} has {} elements, {} has {}; they must be equal", from.to_string(),
                                    from.size(), to.to_string(), to.size()));
}

void refuse_rows(const Shape& shape, std::int64_t begin, std::int64_t end) {
  throw InvalidArgument(fmt::format("rows: {} to {} of shape {}; use 0 <= begin <= end <= the first size", begin, end,
                                    shape.to_string()));
}

Shape with_rows(const Shape& shape, std::int64_t rows) {
  std::array<std::int64_t, kMaxRank> sizes;
  std::copy(shape.begin(), shape.end(), sizes.begin());
  sizes[0] = rows;
  return Shape(std::span<const std::int64_t>(sizes.data(), shape.rank()));
}

}  // namespace plimsoll::tensor_view_detail
