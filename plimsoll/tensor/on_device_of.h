// OnDeviceOf, beside: compute on the device of a tensor, whatever the thread's DeviceScope.
//
//   const OnDeviceOf there(x);                      // new tensors are on x's device
//   loss + beside(penalty, loss);                   // moved, with its gradient, when it is elsewhere
//
// Thread safety: as DeviceScope. Cost: a comparison when nothing has to move.
#pragma once

#include <optional>

#include "plimsoll/device/device_scope.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& tensor) {
    if (&device_of(tensor) != &current_device()) scope_.emplace(tensor.device());
  }

 private:
  std::optional<DeviceScope> scope_;
};

// An empty handle stays empty.
inline Tensor beside(const Tensor& tensor, const Tensor& other) {
  if (tensor.is_empty_handle() || &device_of(tensor) == &device_of(other)) return tensor;
  return tensor.to(other.device());
}

}  // namespace plimsoll::internal
