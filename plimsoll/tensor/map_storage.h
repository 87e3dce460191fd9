// Storages on memory that nobody writes to, such as a private mapping of a file.
//
//   StorageRef weights = wrap_unchanging(device, address, bytes, [=](void*) { munmap(address, bytes); });
//
// Unlike with Storage::wrap(), variables use such memory without a copy; code that wants to change it copies it first,
// into memory that is charged. Counted as a buffer of 0 bytes.
#pragma once

#include <cstddef>
#include <functional>

#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

StorageRef wrap_unchanging(Device& device, void* memory, std::size_t bytes, std::function<void(void*)> deleter);

}  // namespace plimsoll::internal
