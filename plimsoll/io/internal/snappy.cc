#include "plimsoll/io/internal/snappy.h"

#include "plimsoll/base/wire.h"

namespace plimsoll::internal {
namespace {

// One element: bytes that follow, or bytes seen before.
struct SnappyElement {
  bool literal = false;
  std::size_t length = 0;
  std::size_t distance = 0;
};

// Takes `count` bytes off as a little-endian number.
bool take_bytes(std::string_view& in, std::size_t count, std::size_t& value) {
  if (in.size() < count) return false;
  value = 0;
  for (std::size_t place = 0; place < count; ++place)
    value |= static_cast<std::size_t>(static_cast<unsigned char>(in[place])) << (8 * place);
  in.remove_prefix(count);
  return true;
}

bool take_element(std::string_view& in, SnappyElement& element) {
  std::size_t tag = 0, low = 0;
  if (!take_bytes(in, 1, tag)) return false;
  const std::size_t high = tag >> 2;
  element.literal = (tag & 3) == 0;
  switch (tag & 3) {
    case 0:
      element.length = high + 1;
      if (high < 60) return true;
      if (!take_bytes(in, high - 59, low)) return false;
      element.length = low + 1;
      return true;
    case 1:
      element.length = 4 + (high & 7);
      if (!take_bytes(in, 1, low)) return false;
      element.distance = (tag >> 5) << 8 | low;
      return true;
    default:
      element.length = high + 1;
      return take_bytes(in, (tag & 3) == 2 ? 2 : 4, element.distance);
  }
}

}  // namespace

std::optional<std::string> snappy_uncompress(std::string_view compressed, std::size_t max_bytes) {
  std::uint64_t size = 0;
  if (!take_varint(compressed, size) || size > max_bytes) return {};
  std::string out;
  while (!compressed.empty()) {
    SnappyElement element;
    if (!take_element(compressed, element) || element.length > size - out.size()) return {};
    if (element.literal) {
      if (element.length > compressed.size()) return {};
      out += compressed.substr(0, element.length);
      compressed.remove_prefix(element.length);
      continue;
    }
    if (element.distance == 0 || element.distance > out.size()) return {};
    for (std::size_t i = 0; i < element.length; ++i) out.push_back(out[out.size() - element.distance]);  // May overlap.
  }
  if (out.size() != size) return {};
  return out;
}

}  // namespace plimsoll::internal
