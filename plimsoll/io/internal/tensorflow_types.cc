#include "plimsoll/io/internal/tensorflow_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace plimsoll::internal {
namespace {

struct TensorflowType {
  const char* name;
  std::uint8_t bytes;
};
constexpr TensorflowType kTypes[] = {
    {"invalid", 0},     {"float32", 4}, {"float64", 8},   {"int32", 4},   {"uint8", 1},   {"int16", 2},
    {"int8", 1},        {"string", 0},  {"complex64", 8}, {"int64", 8},   {"bool", 1},    {"qint8", 1},
    {"quint8", 1},      {"qint32", 4},  {"bfloat16", 2},  {"qint16", 2},  {"quint16", 2}, {"uint16", 2},
    {"complex128", 16}, {"float16", 2}, {"resource", 0},  {"variant", 0}, {"uint32", 4},  {"uint64", 8},
};
constexpr std::uint8_t kNumbers[kNumDTypes] = {10, 4, 6, 5, 3, 9, 19, 14, 1, 2};  // By our DType.

}  // namespace

int tensorflow_dtype(DType dtype) noexcept { return kNumbers[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_of_tensorflow(std::int64_t number) noexcept {
  const auto found = std::find(std::begin(kNumbers), std::end(kNumbers), number);
  if (found == std::end(kNumbers)) return {};
  return static_cast<DType>(found - std::begin(kNumbers));
}

std::size_t tensorflow_element_bytes(std::int64_t number) noexcept {
  return number >= 0 && number < static_cast<std::int64_t>(std::size(kTypes)) ? kTypes[number].bytes : 0;
}

std::string tensorflow_dtype_name(std::int64_t number) {
  if (number > 0 && number < static_cast<std::int64_t>(std::size(kTypes))) return kTypes[number].name;
  return fmt::format("dtype {}", number);
}

WireWriter tensorflow_shape(const Shape& shape) {
  WireWriter out;
  for (const std::int64_t size : shape) {
    WireWriter dimension;
    dimension.integer(1, size);
    out.message(2, dimension);
  }
  return out;
}

Shape parse_tensorflow_shape(std::string_view bytes) {
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 1;
  for (WireReader in(bytes); in.next();) {
    if (in.field() == 3 && in.integer() != 0) throw WireError("a shape of unknown rank");
    if (in.field() != 2) continue;
    std::int64_t size = 0;
    for (WireReader dimension(in.bytes()); dimension.next();)
      if (dimension.field() == 1) size = dimension.integer();
    if (size < 0) throw WireError(fmt::format("a shape with an axis of size {}", size));
    if (sizes.size() == kMaxRank) throw WireError(fmt::format("a shape of more than {} axes", kMaxRank));
    if (size > 0 &&
        elements > std::numeric_limits<std::int64_t>::max() / 16 / size)  // 16: bytes of an element, at most.
      throw WireError("a shape of more elements than can exist");
    if (size > 0) elements *= size;
    sizes.push_back(size);
  }
  return Shape(sizes);
}

}  // namespace plimsoll::internal
