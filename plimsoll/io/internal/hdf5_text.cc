#include "plimsoll/io/internal/hdf5_text.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMaxText = 64_MiB, kBesideText = 64;  // Overhead of a kept string besides its bytes.

// Up to the first zero byte, as libraries pad.
std::string trimmed(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

}  // namespace

void Hdf5Text::charge(std::size_t bytes, std::uint64_t address) {
  if (bytes > kMaxText - charged_ || kMaxText - charged_ - bytes < kBesideText)
    throw Unsupported(fmt::format("file \"{}\": names and attributes of more than {} (at offset {})",
                                  bytes_.file.name(), format_bytes(kMaxText), address));
  charged_ += bytes + kBesideText;
}

std::string Hdf5Text::heap_text(std::uint64_t collection, std::uint32_t index, std::uint32_t length) {
  auto found = collections_.find(collection);
  if (found == collections_.end()) {
    Hdf5Cursor head = bytes_.block(collection, 16, "a global heap");
    head.expect("GCOL", "a global heap");
    head.skip(4);
    const auto size = head.number<std::uint64_t>();
    bytes_.require(collection, size, "a global heap");
    std::map<std::uint32_t, Place> places;
    for (std::uint64_t at = 16; at + 16 <= size;) {
      Hdf5Cursor in = bytes_.block(collection + at, 16, "a global heap");
      const std::uint32_t number = in.number<std::uint16_t>();
      in.skip(6);
      const auto bytes = in.number<std::uint64_t>();
      if (number == 0) break;  // The free part.
      if (bytes > size - at - 16) in.corrupt("text that does not fit its heap");
      charge(0, collection);
      places[number] = {collection + at + 16, bytes};
      at += 16 + (bytes + 7) / 8 * 8;
    }
    found = collections_.emplace(collection, std::move(places)).first;
  }
  const auto place = found->second.find(index);
  if (place == found->second.end() || length > place->second.size)
    bytes_.corrupt(collection, fmt::format("text {} of {} bytes is not in its global heap", index, length));
  charge(length, place->second.address);
  Hdf5Cursor in = bytes_.block(place->second.address, length, "text");
  return trimmed(in.text(length));
}

void Hdf5Text::read_attribute(Hdf5Cursor& in, std::map<std::string, std::vector<std::string>>& out) {
  const std::uint8_t version = in.byte(), flags = in.byte();
  if (version < 1 || version > 3) in.corrupt(fmt::format("an attribute of version {}", version));
  const std::size_t name_bytes = in.number<std::uint16_t>(), type_bytes = in.number<std::uint16_t>(),
                    space_bytes = in.number<std::uint16_t>();
  if (version == 3) in.skip(1);
  if (version > 1 && flags != 0) return;  // Its type is stored elsewhere.
  const auto padded = [&](std::size_t bytes) { return version == 1 ? (bytes + 7) / 8 * 8 : bytes; };
  const std::string name = trimmed(in.text(padded(name_bytes)).substr(0, name_bytes));
  Hdf5Cursor type_part = in.part(padded(type_bytes)), space_part = in.part(padded(space_bytes));
  const Hdf5Type type = read_hdf5_type(type_part);
  const std::optional<Shape> shape = read_hdf5_space(space_part);
  const bool is_long = type.kind == Hdf5Type::Kind::kLongText;
  if (!is_long && type.kind != Hdf5Type::Kind::kText) return;
  charge(name.size(), in.address());
  std::vector<std::string>& values = out[name];
  values.clear();
  for (std::size_t i = 0; shape && i < shape->size(); ++i) {
    if (is_long) {
      const auto length = in.number<std::uint32_t>();
      const auto collection = in.number<std::uint64_t>();
      const auto index = in.number<std::uint32_t>();
      values.push_back(length == 0 ? std::string() : heap_text(collection, index, length));
    } else {
      charge(type.size, in.address());
      values.push_back(trimmed(in.text(type.size)));
    }
  }
}

}  // namespace plimsoll::internal
