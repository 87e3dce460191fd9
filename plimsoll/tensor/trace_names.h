// Names of tensors, for traces: blocks carry none, since a tensor's name may change and need not last.
#pragma once

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

void tell_trace_name(const Tensor& tensor) noexcept;  // While nothing records: nothing. Views have no block to name.
void tell_trace_all_names();                          // Those of all tensors there are, when recording begins.

}  // namespace plimsoll::internal
