#include "plimsoll/tensor/host_access.h"

#include <cstring>

#include "plimsoll/device/device.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/staging.h"

namespace plimsoll::internal {

StorageRef take_staging(std::size_t bytes) {
  const Shape shape({static_cast<std::int64_t>(bytes)});
  return Storage::take(Runtime::instance().host_device(), bytes,
                       block_label({.op = "staging", .category = Category::kWorkspace}, shape, u8));
}

HostWrite::HostWrite(const Tensor& tensor, Elements elements) : view_(writable(tensor)) {
  Device& device = device_of(tensor);
  if (!device.is_host()) [[unlikely]]
    stage(device, elements);
}

HostWrite::HostWrite(Device& device, const TensorView& there, Elements elements) : view_(there) {
  if (!device.is_host()) [[unlikely]]
    stage(device, elements);
}

void HostWrite::stage(Device& device, Elements elements) {
  if (view_.nbytes() == 0) return;
  if (elements == Elements::kKept) settle_checks(device);
  StorageRef staged = take_staging(view_.nbytes());
  if (elements == Elements::kKept) device.backend().copy_out(staged->base(), view_.bytes(), view_.nbytes());
  there_ = view_.bytes();
  device_ = &device;
  view_ = TensorView(staged->base(), 0, view_.dtype(), view_.shape());
  staged_ = std::move(staged);
}

void HostWrite::copy_in() noexcept {
  device_->backend().copy_in(there_, view_.bytes(), view_.nbytes());
  staged_ = {};
}

void copy_between(Device& from_device, const ConstTensorView& from, Device& to_device, const TensorView& to) {
  const std::size_t bytes = from.nbytes();
  if (bytes == 0) return;
  if (from_device.is_host()) return to_device.backend().copy_in(to.bytes(), from.bytes(), bytes);
  if (to_device.is_host()) return from_device.backend().copy_out(to.bytes(), from.bytes(), bytes);
  const StorageRef staged = take_staging(bytes);
  from_device.backend().copy_out(staged->base(), from.bytes(), bytes);
  to_device.backend().copy_in(to.bytes(), staged->base(), bytes);
}

}  // namespace plimsoll::internal
