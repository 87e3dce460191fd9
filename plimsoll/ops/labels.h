// Labels passed by a program are checked before they index anything.
#pragma once

#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Throws InvalidArgument that names the first of `labels` outside [0, classes), its position, and what it is called
// ("label"). An empty handle and dtypes other than i32 and i64 are left to the op.
void require_labels(const char* where, const char* what, const Tensor& labels, std::int64_t classes);
// The same for Op::index_rule(), of operand 0. The texts live as long as the program.
IndexRule label_rule(const char* where, const char* what, std::int64_t classes);

}  // namespace plimsoll::internal
