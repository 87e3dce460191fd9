// Slices of partitioned tensors in the index of a bundle.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plimsoll/io/bundle.h"

namespace plimsoll::internal {

// The key of a tensor's slice: bytes that sort by name, then by place.
std::string slice_key(std::string_view name, const BundleSlice& slice);

// A slice of a tensor of this shape. Throws WireError when it is not inside.
BundleSlice parse_slice(std::string_view bytes, const Shape& shape);

// What is wrong when they overlap or leave elements out; else "".
std::string fault_of_slices(const Shape& shape, std::span<const BundleSlice> slices);

}  // namespace plimsoll::internal
