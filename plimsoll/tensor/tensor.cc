#include "plimsoll/tensor/tensor.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {

Interceptor::~Interceptor() = default;
bool Interceptor::watches(std::span<const Tensor* const>) const { return true; }
OpObserver::~OpObserver() = default;

const Shape& Tensor::shape() const noexcept {
  static const Shape kUnset;
  return record_ ? record_->shape() : kUnset;
}

std::string Tensor::device() const { return device_of(*this).name(); }

ConstTensorView Tensor::view() const {
  Storage* storage = record_ ? record_->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(*this, "reading a tensor", "it");
  return {storage->resident(), record_->offset, record_->dtype, record_->shape()};
}

ConstTensorView Tensor::view(BytesLock& lock) const {
  Storage* storage = record_ ? record_->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(*this, "reading a tensor", "it");
  lock.hold(*storage);
  return {storage->base(), record_->offset, record_->dtype, record_->shape()};
}

ConstTensorView Tensor::host_view(HostBytes& bytes) const {
  Storage* storage = record_ ? record_->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(*this, "reading a tensor", "it");
  return {bytes.hold(*storage, record_->offset, nbytes()), 0, record_->dtype, record_->shape()};
}

ConstTensorView Tensor::element_view(const std::int64_t* index, std::size_t count, HostBytes& bytes) const {
  Storage* storage = record_ ? record_->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(*this, "reading a tensor", "it");
  if (storage->is_symbolic()) storage->resident();  // Says so.
  if (!index && size() != 1)
    throw InvalidArgument(fmt::format("item: a tensor of shape {} has {} elements, not one; use at() or to_vector()",
                                      shape().to_string(), size()));
  if (index && count != rank())
    throw InvalidArgument(fmt::format("at: {} positions for a tensor of shape {}; give one for each of the {} axes",
                                      count, shape().to_string(), rank()));
  std::size_t element = 0;
  for (std::size_t axis = 0; axis < count; ++axis) {
    const std::int64_t size = shape()[axis], position = index[axis] < 0 ? index[axis] + size : index[axis];
    if (position < 0 || position >= size)
      throw InvalidArgument(
          fmt::format("at: position {} is outside of axis {} of shape {}", index[axis], axis, shape().to_string()));
    element = element * static_cast<std::size_t>(size) + static_cast<std::size_t>(position);
  }
  const std::size_t offset = record_->offset + element * size_of(dtype());
  return {bytes.hold(*storage, offset, size_of(dtype())), 0, dtype(), Shape::scalar()};
}

Tensor::operator bool() const {
  {
    BytesLock lock;
    view(lock);  // Of a symbolic one: says that it has no value yet.
  }
  if (size() != 1 || rank() != 0)
    throw InvalidArgument(
        fmt::format("bool: a tensor of shape {} has no truth value; use any() or all()", shape().to_string()));
  return item<bool>();
}

}  // namespace plimsoll
