// Staging: the memory through which bytes pass between a file and tensors when they cannot go directly.
//
//   const Staging staging(1_MiB);          // at most so much, see below
//   file.read(offset, staging.bytes());
//
// It never has more than 16 MiB nor more than 1/16 of the tightest budget or device limit in force (but 1 KiB), comes
// from the device's arena and is listed there as "file staging", category workspace.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/tensor/storage.h"

namespace plimsoll {

// What a Staging of so many bytes would have.
std::size_t staging_bytes(std::size_t wanted);

class Staging {
 public:
  explicit Staging(std::size_t wanted);  // Throws OutOfMemory.
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  StorageRef storage_;
  std::span<std::byte> bytes_;
};

}  // namespace plimsoll
