#include "plimsoll/ops/labels.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

// "3" in a vector, "[1, 2]" in a matrix.
std::string position_text(const Shape& shape, std::int64_t position) {
  if (shape.rank() == 1) return std::to_string(position);
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0; position /= shape[axis])
    text = fmt::format("{}{}{}", position % shape[axis], text.empty() ? "" : ", ", text);
  return "[" + text + "]";
}

}  // namespace

void require_labels(const char* where, const char* what, const Tensor& labels, std::int64_t classes) {
  if (labels.is_empty_handle() || labels.is_disposed() || (labels.dtype() != i32 && labels.dtype() != i64)) return;
  if (is_symbolic(labels)) return;  // Checked when the graph runs.
  require_labels(where, what, HostRead(labels), classes);
}

void require_labels(const char* where, const char* what, const ConstTensorView& labels, std::int64_t classes) {
  const std::int64_t bad = first_bad_index(labels, classes);
  if (bad < 0) return;
  const std::int64_t value =
      labels.dtype() == i32 ? labels.data<std::int32_t>()[bad] : labels.data<std::int64_t>()[bad];
  throw InvalidArgument(fmt::format("{}: {} {} at position {} is not one of the {} classes, which count from 0", where,
                                    what, value, position_text(labels.shape(), bad), classes));
}

}  // namespace plimsoll::internal
