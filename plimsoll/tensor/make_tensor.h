// Making tensors: the functions with which ops, creation functions and tapes build handles.
//
//   Tensor y = make_tensor({.op = "Zeros", .category = Category::kInputs}, {2, 3}, f32, device);   // not cleared
//   Tensor v = make_view(y, "Reshape", {6}, 0);
//   writable(y)                                   // a view to fill, before anyone else sees it
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll::internal {

class Device;

// Which operation makes a tensor, and for what.
struct Origin {
  const char* op = "";  // Text that lives as long as the program.
  Category category = ThreadContext::current().category;
};

// A tensor with bytes of its own, not cleared. Throws OutOfMemory; then nothing has changed. Requires a known shape.
PLIMSOLL_API Tensor make_tensor(const Origin& origin, const Shape& shape, DType dtype, Device& device);
// The same with the shape of a tensor that the caller holds: spares looking the shape up.
PLIMSOLL_API Tensor make_tensor_like(const Origin& origin, const TensorRecord& like, DType dtype, Device& device);

// A tensor on these bytes. `flags` of TensorRecord are set from the start, for concurrent walks over the ledger.
PLIMSOLL_API Tensor make_tensor_on(StorageRef storage, std::size_t offset, const Shape& shape, DType dtype,
                                   const Origin& origin, std::uint8_t flags = 0);
// On the bytes of another tensor, starting `offset` bytes after its first. Throws Disposed that names `op`.
PLIMSOLL_API Tensor make_view(const Tensor& base, const char* op, const Shape& shape, std::size_t offset);

// The ledger's label for a new block.
PLIMSOLL_API BlockLabel block_label(const Origin& origin, const Shape& shape, DType dtype) noexcept;

PLIMSOLL_API void set_name(const Tensor& tensor, std::string_view name);
PLIMSOLL_API TensorView writable(const Tensor& tensor);

// The device for new tensors: that of the DeviceScope, or the first.
PLIMSOLL_API Device& current_device();
// The same, but the first CPU device instead of one that the host cannot access: for tensors that are filled piece by
// piece.
PLIMSOLL_API Device& current_host_device();
PLIMSOLL_API Device& device_of(const Tensor& tensor);

// Throws Unsupported, suggesting a move, when the tensor is on a device whose bytes the host cannot access.
PLIMSOLL_API void require_host(const Tensor& tensor, std::string_view where);

[[noreturn]] PLIMSOLL_API void refuse_disposed(const Tensor& tensor, std::string_view where, std::string_view argument);

}  // namespace plimsoll::internal
