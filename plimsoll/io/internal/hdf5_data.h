// Reads a dataset's elements into a tensor's memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "plimsoll/io/internal/hdf5_objects.h"

namespace plimsoll::internal {

// The size of the elements in bytes. Throws Corruption when the file cannot hold that many: nothing is allocated for a
// false claim.
std::uint64_t hdf5_data_bytes(const Hdf5Bytes& bytes, const Hdf5Object& object);
// Throws Unsupported for a layout that is not read: its size was not compared with the file.
void require_hdf5_layout(const Hdf5Bytes& bytes, const Hdf5Object& object);
// Fills `out`, which has that many. Throws Corruption, Unsupported for filters that are not read, OutOfMemory.
void read_hdf5_data(const Hdf5Bytes& bytes, const Hdf5Object& object, std::span<std::byte> out);

}  // namespace plimsoll::internal
