// Labels that a program gives: checked before they index anything.
#pragma once

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Throws InvalidArgument that names the first of `labels` outside of [0, classes), where it is, and what it is called
// ("label"). Leaves to the op what is no tensor, or not of i32 or i64.
void require_labels(const char* where, const char* what, const Tensor& labels, std::int64_t classes);
// The same of a graph's values, when it runs.
void require_labels(const char* where, const char* what, const ConstTensorView& labels, std::int64_t classes);

}  // namespace plimsoll::internal
