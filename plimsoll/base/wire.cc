#include "plimsoll/base/wire.h"

#include <fmt/format.h>

namespace plimsoll::internal {

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

bool take_varint(std::string_view& in, std::uint64_t& value) noexcept {
  value = 0;
  for (std::size_t place = 0; place < in.size() && place < 10; ++place) {
    const auto byte = static_cast<unsigned char>(in[place]);
    if (place == 9 && byte > 1) return false;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * place);
    if (byte & 0x80) continue;
    in.remove_prefix(place + 1);
    return true;
  }
  return false;
}

void WireWriter::integer(std::uint32_t field, std::int64_t value) {
  if (value == 0) return;
  tag(field, 0);
  append_varint(bytes_, static_cast<std::uint64_t>(value));
}

void WireWriter::real(std::uint32_t field, double value) {
  if (std::bit_cast<std::uint64_t>(value) == 0) return;
  tag(field, 1);
  append_number(bytes_, value);
}

void WireWriter::single(std::uint32_t field, float value) {
  if (std::bit_cast<std::uint32_t>(value) != 0) single_always(field, value);
}

void WireWriter::single_always(std::uint32_t field, float value) {
  tag(field, 5);
  append_number(bytes_, value);
}

void WireWriter::fixed32(std::uint32_t field, std::uint32_t value) {
  if (value == 0) return;
  tag(field, 5);
  append_number(bytes_, value);
}

void WireWriter::text(std::uint32_t field, std::string_view value) {
  if (!value.empty()) item(field, value);
}

void WireWriter::item(std::uint32_t field, std::string_view value) {
  tag(field, 2);
  append_varint(bytes_, value.size());
  bytes_ += value;
}

bool WireReader::next() {
  if (bytes_.empty()) return false;
  std::uint64_t tag = 0;
  if (!take_varint(bytes_, tag) || tag >> 32 != 0 || tag >> 3 == 0) throw WireError("a field's number is damaged");
  field_ = static_cast<std::uint32_t>(tag >> 3);
  type_ = static_cast<std::uint32_t>(tag & 7);
  std::uint64_t size = 0;
  if (type_ == kVarint) {
    if (!take_varint(bytes_, number_)) throw WireError(fmt::format("field {} ends too early", field_));
    return true;
  }
  if (type_ == kFixed64)
    size = 8;
  else if (type_ == kFixed32)
    size = 4;
  else if (type_ != kBytes || !take_varint(bytes_, size))
    throw WireError(fmt::format("field {} has wire type {} or no length", field_, type_));
  if (size > bytes_.size())
    throw WireError(fmt::format("field {} has {} bytes, {} are left", field_, size, bytes_.size()));
  content_ = bytes_.substr(0, static_cast<std::size_t>(size));
  bytes_.remove_prefix(static_cast<std::size_t>(size));
  return true;
}

void WireReader::expect(std::uint32_t type) const {
  if (type_ != type) throw WireError(fmt::format("field {} has wire type {} instead of {}", field_, type_, type));
}

std::uint64_t WireReader::number() const {
  expect(kVarint);
  return number_;
}

std::uint32_t WireReader::fixed32() const {
  expect(kFixed32);
  return load_number<std::uint32_t>(content_.data());
}

double WireReader::real() const {
  expect(kFixed64);
  return load_number<double>(content_.data());
}

std::string_view WireReader::bytes() const {
  expect(kBytes);
  return content_;
}

}  // namespace plimsoll::internal
