// TensorFlow's numbers for element types, and shapes as its files store them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/base/wire.h"

namespace plimsoll::internal {

inline constexpr int kTensorflowString = 7;

int tensorflow_dtype(DType dtype) noexcept;
std::optional<DType> dtype_of_tensorflow(std::int64_t number) noexcept;
// 0 when elements have no fixed size, or are unknown to us.
std::size_t tensorflow_element_bytes(std::int64_t number) noexcept;
std::string tensorflow_dtype_name(std::int64_t number);  // "string", "complex64", "dtype 99".

WireWriter tensorflow_shape(const Shape& shape);
// Throws WireError for sizes that no tensor can have.
Shape parse_tensorflow_shape(std::string_view bytes);

}  // namespace plimsoll::internal
