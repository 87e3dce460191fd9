// copy_on: copies the elements of one tensor to another on the same device, of the same dtype and shape.
#pragma once

#include "plimsoll/device/device.h"
#include "plimsoll/kernels/elementwise.h"

namespace plimsoll::internal {

inline void copy_on(Device& device, const ConstTensorView& from, const TensorView& to) {
  if (device.is_host())
    copy(from, to);
  else
    device.backend().copy(to.bytes(), from.bytes(), from.nbytes());
}

}  // namespace plimsoll::internal
