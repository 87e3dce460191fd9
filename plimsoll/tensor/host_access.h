// HostRead, HostWrite: a tensor's elements where this process can read or write them.
//
//   const HostRead labels(y);                              // valid while it lives
//   for (const std::int32_t label : labels.span<std::int32_t>()) ...
//   HostWrite to(result);
//   std::iota(to.data<float>(), ...);
//   to.finish();                                           // before another operation uses the tensor
//
// On the host these are the tensor's own bytes and cost nothing. For another device they are a copy in host memory,
// charged to the thread's budget: read when a HostRead begins, written when a HostWrite ends. All code outside
// Op::run() that reads or writes elements uses them. They throw Disposed, OutOfMemory, and Error when the device fails;
// the destructor of a HostWrite does not throw (backend.h). Thread safety: as the tensor's.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class Device;

class HostRead {
 public:
  explicit HostRead(const Tensor& tensor) : view_(tensor.host_view(bytes_)) {}
  HostRead(const HostRead&) = delete;
  HostRead& operator=(const HostRead&) = delete;

  const ConstTensorView& view() const noexcept { return view_; }
  operator const ConstTensorView&() const noexcept { return view_; }
  const std::byte* bytes() const noexcept { return view_.bytes(); }
  template <Element T>
  const T* data() const {
    return view_.data<T>();
  }
  template <Element T>
  std::span<const T> span() const {
    return view_.span<T>();
  }

 private:
  HostBytes bytes_;
  ConstTensorView view_;
};

// The elements of a new tensor, which are all written; or of a `kept` one, where only some are.
class PLIMSOLL_API HostWrite {
 public:
  enum class Elements { kNew, kKept };
  explicit HostWrite(const Tensor& tensor, Elements elements = Elements::kNew);
  // For bytes on this device, such as Variable::writable_value().
  HostWrite(Device& device, const TensorView& there, Elements elements = Elements::kNew);
  HostWrite(const HostWrite&) = delete;
  HostWrite& operator=(const HostWrite&) = delete;
  ~HostWrite() { finish(); }

  void finish() noexcept {
    if (staged_) [[unlikely]]
      copy_in();
  }

  const TensorView& view() const noexcept { return view_; }
  operator const TensorView&() const noexcept { return view_; }
  std::byte* bytes() const noexcept { return view_.bytes(); }
  template <Element T>
  T* data() const {
    return view_.data<T>();
  }
  template <Element T>
  std::span<T> span() const {
    return view_.span<T>();
  }

 private:
  void stage(Device& device, Elements elements);
  void copy_in() noexcept;

  TensorView view_;        // On the host.
  void* there_ = nullptr;  // On the device, when that is not the host.
  Device* device_ = nullptr;
  StorageRef staged_;
};

// Copies the bytes of one tensor to another of the same dtype and size, between any two devices. Throws as HostRead.
PLIMSOLL_API void copy_between(Device& from_device, const ConstTensorView& from, Device& to_device,
                               const TensorView& to);

}  // namespace plimsoll::internal
