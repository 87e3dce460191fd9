// The wire format of protocol buffers, as far as our file formats need it.
//
//   WireWriter out;
//   out.integer(1, 5);  out.text(2, "loss");  out.message(3, inner);     // proto3: what is 0 or empty is left out
//   for (WireReader in(bytes); in.next();)
//     if (in.field() == 1) value = in.integer();                         // fields that are not read are skipped
//
// A reader never reads outside its bytes; damage and a field of an unexpected type throw WireError, which the caller
// turns into Corruption with file and offset. Thread safety: one thread at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plimsoll::internal {

static_assert(std::endian::native == std::endian::little, "our file formats are written as they are in memory");

// Little-endian numbers in strings of bytes.
template <class T>
void append_number(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
template <class T>
T load_number(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

void append_varint(std::string& out, std::uint64_t value);
// Removes a number from the front of `in`; false when it is incomplete or has more than 64 bits.
bool take_varint(std::string_view& in, std::uint64_t& value) noexcept;

class WireWriter {
 public:
  void integer(std::uint32_t field, std::int64_t value);  // int32, int64, uint64, bool and enum.
  void real(std::uint32_t field, double value);           // double
  void single(std::uint32_t field, float value);          // float
  void fixed32(std::uint32_t field, std::uint32_t value);
  void text(std::uint32_t field, std::string_view value);  // string and bytes.
  // Elements and messages are written even when they are 0 or empty.
  void item(std::uint32_t field, std::string_view value);
  void message(std::uint32_t field, const WireWriter& value) { item(field, value.bytes()); }
  void single_always(std::uint32_t field, float value);

  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void tag(std::uint32_t field, std::uint32_t type) { append_varint(bytes_, field << 3 | type); }
  std::string bytes_;
};

class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) noexcept : bytes_(bytes) {}

  bool next();  // Moves to the next field; false at the end.
  std::uint32_t field() const noexcept { return field_; }

  // The current field's value.
  std::uint64_t number() const;
  std::int64_t integer() const { return static_cast<std::int64_t>(number()); }
  std::uint32_t fixed32() const;
  float single() const { return std::bit_cast<float>(fixed32()); }
  double real() const;
  bool is_bytes() const noexcept { return type_ == kBytes; }
  std::string_view bytes() const;  // The content of a string, bytes, a message or packed numbers.

 private:
  enum Type : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  void expect(std::uint32_t type) const;

  std::string_view bytes_;
  std::uint32_t field_ = 0;
  std::uint32_t type_ = kVarint;
  std::uint64_t number_ = 0;
  std::string_view content_;
};

}  // namespace plimsoll::internal
