// The header of a .npy array: a Python dictionary of descr, fortran_order and shape.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  Shape shape;
  std::optional<DType> dtype;  // Empty when it is not supported.
  bool swapped = false;        // The other byte order.
  std::size_t element_bytes = 0;
};

class NpyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes of the fixed part: magic, version and the length, which is read from them. Throws NpyError.
inline constexpr std::size_t kNpyPreamble = 12;  // In versions 2 and 3; version 1 has 2 fewer.
struct NpyPreamble {
  std::size_t bytes = 0;  // 10 or 12.
  std::uint64_t header_bytes = 0;
};
NpyPreamble parse_npy_preamble(std::string_view first_12_bytes);
NpyHeader parse_npy_header(std::string_view text);  // Throws NpyError.

// Everything before the elements, in version 1.
std::string format_npy_header(DType dtype, const Shape& shape);

}  // namespace plimsoll::internal
