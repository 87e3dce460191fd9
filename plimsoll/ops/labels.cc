#include "plimsoll/ops/labels.h"

#include <fmt/format.h>

#include "plimsoll/tensor/index_check.h"

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

std::string label_text(const IndexRule& rule, const Shape& labels, std::int64_t position, std::int64_t label) {
  return fmt::format("{}: {} {} at position {} is not one of the {} classes, which count from 0", rule.where, rule.what,
                     label, position_text(labels, position), rule.size);
}

}  // namespace

IndexRule label_rule(const char* where, const char* what, std::int64_t classes) {
  return {.size = classes, .where = where, .what = what, .text = label_text};
}

void require_labels(const char* where, const char* what, const Tensor& labels, std::int64_t classes) {
  if (labels.is_empty_handle() || labels.is_disposed() || (labels.dtype() != i32 && labels.dtype() != i64)) return;
  check_indices(labels, label_rule(where, what, classes));
}

}  // namespace plimsoll::internal
