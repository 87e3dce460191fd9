// Staging: the buffer between a file and tensors when bytes cannot be copied directly.
//
//   const Staging staging(1_MiB);          // at most this much, see below
//   file.read(offset, staging.bytes());
//
// It is never larger than 16 MiB or 1/16 of the tightest budget or device limit in force (but at least 1 KiB), comes
// from the device's arena and is listed there as "file staging", category workspace.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

// The bytes that a Staging of this size would get.
std::size_t staging_bytes(std::size_t wanted);

class Staging {
 public:
  explicit Staging(std::size_t wanted);  // Throws OutOfMemory.
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  StorageRef storage_;
  std::span<std::byte> bytes_;
};

}  // namespace plimsoll::internal
