// Names of tensors, for traces: blocks carry none, because a tensor's name may change and need not last.
#pragma once

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

void tell_trace_name(const Tensor& tensor) noexcept;  // Only while recording. Views have no block.
void tell_trace_all_names();                          // The names of all tensors, when recording begins.

}  // namespace plimsoll::internal
