// PinnedBytes: a tensor's bytes, on the host, which stay in place while this lives, whatever happens to the tensor.
#pragma once

#include <span>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

class PinnedBytes {
 public:
  // Throws Disposed, InvalidArgument for an empty handle, FailedPrecondition for a symbolic one.
  explicit PinnedBytes(const Tensor& tensor)
      : view_(tensor.host_view(bytes_)), storage_(StorageRef::share(tensor.record()->storage)) {
    storage_->pin();
  }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  ~PinnedBytes() { storage_->unpin(); }

  const ConstTensorView& view() const noexcept { return view_; }
  std::span<const std::byte> bytes() const { return {view_.bytes(), view_.nbytes()}; }

 private:
  HostBytes bytes_;
  ConstTensorView view_;
  StorageRef storage_;
};

}  // namespace plimsoll::internal
