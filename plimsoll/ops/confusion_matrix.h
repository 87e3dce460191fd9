// confusion_matrix: counts how often each class was predicted for each label.
//
//   confusion_matrix(constant({0, 1, 1}), constant({0, 1, 0}), 2)     // i32 [[1, 0], [1, 1]]
//
// Rows are labels, columns predictions. Both are i32 or i64 vectors of one length. Throws InvalidArgument for others,
// for fewer than one class, and for a value outside the classes, naming it and its position.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

PLIMSOLL_API Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, std::int64_t num_classes);

}  // namespace plimsoll
