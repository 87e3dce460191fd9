#include "plimsoll/io/internal/hdf5_bytes.h"

#include <fmt/format.h>

namespace plimsoll::internal {

void Hdf5Bytes::require(std::uint64_t address, std::uint64_t bytes, std::string_view what) const {
  if (address <= size && bytes <= size - address) return;
  const std::uint64_t at = address <= size ? address : size;  // So that the sum with `base` does not pass 2^64.
  corrupt(at, fmt::format("{} of {} bytes at {} is not inside of the {} bytes", what, bytes, address, size));
}

Hdf5Cursor Hdf5Bytes::block(std::uint64_t address, std::uint64_t bytes, std::string_view what) const {
  require(address, bytes, what);
  return Hdf5Cursor(*this, file.read_string(base + address, bytes, bytes), address);
}

std::uint64_t Hdf5Cursor::sized(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return number<std::uint8_t>();
    case 2:
      return number<std::uint16_t>();
    case 4:
      return number<std::uint32_t>();
    default:
      return number<std::uint64_t>();
  }
}

void Hdf5Cursor::expect(std::string_view mark, std::string_view what) {
  if (mark.size() > left() || text(mark.size()) != mark) bytes_->corrupt(address_, fmt::format("{} is damaged", what));
}

}  // namespace plimsoll::internal
