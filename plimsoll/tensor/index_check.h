// Checks of indices by a rule (device/index_rule.h): on the host at once, on other devices in their own time.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/index_rule.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Throws InvalidArgument, with the rule's text, for the first of the indices that is outside of [0, rule.size). The
// host can read them.
PLIMSOLL_API void check_indices(const ConstTensorView& indices, const IndexRule& rule);

// The same for a tensor. On a device that checks its own indices it does not wait: the error is thrown by the next call
// that waits for the device or changes a variable there (device/index_checks.h). Symbolic tensors are left to their
// graph.
PLIMSOLL_API void check_indices(const Tensor& indices, const IndexRule& rule);

// Throws what such checks have found on this device; to be called before its bytes are read or a variable changes.
inline void settle_checks(Device& device) {
  if (device.index_checks().is_pending()) [[unlikely]]
    device.index_checks().settle();
}

}  // namespace plimsoll::internal
