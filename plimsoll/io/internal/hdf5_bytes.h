// Hdf5Bytes: the bytes of an HDF5 file, which may be a part of another file (a member of a zip archive). Hdf5Cursor:
// reads numbers from a block of them, in order; missing bytes are Corruption, with the file and the offset.
//
//   Hdf5Bytes bytes{file, 0, file.size()};
//   Hdf5Cursor in = bytes.block(96, 40);      // checks that the 40 bytes are there
//   in.number<std::uint16_t>();  in.text(8);  in.left();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/input_file.h"

namespace plimsoll::internal {

inline constexpr std::uint64_t kHdf5Nowhere = ~std::uint64_t{0};  // The address of something that does not exist.

class Hdf5Cursor;

struct Hdf5Bytes {
  const InputFile& file;
  std::uint64_t base = 0, size = 0;  // Where it begins in the file, and how long it is.

  [[noreturn]] void corrupt(std::uint64_t address, std::string_view what) const {
    file.corrupt(base + address, what);  // Addresses never exceed size by more than one number's range: see require().
  }
  // Throws Corruption unless all of these bytes are there.
  void require(std::uint64_t address, std::uint64_t bytes, std::string_view what) const;
  Hdf5Cursor block(std::uint64_t address, std::uint64_t bytes, std::string_view what) const;
};

class Hdf5Cursor {
 public:
  Hdf5Cursor(const Hdf5Bytes& bytes, std::string block, std::uint64_t address)
      : bytes_(&bytes), block_(std::move(block)), address_(address) {}

  std::size_t left() const noexcept { return block_.size() - at_; }
  std::uint64_t address() const noexcept { return address_ + at_; }  // Of the next byte, in the file.

  std::string_view text(std::size_t size) {
    if (size > left()) corrupt("a part ends too early");
    const std::string_view result = std::string_view(block_).substr(at_, size);
    at_ += size;
    return result;
  }
  template <class T>
  T number() {
    return load_number<T>(text(sizeof(T)).data());
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  std::uint64_t sized(std::size_t bytes);  // A number of 1, 2, 4 or 8 bytes.
  void skip(std::size_t size) { text(size); }
  void skip_to_multiple(std::size_t of, std::size_t since) {  // Padding, counted from `since`.
    const std::size_t over = (at_ - since) % of;
    if (over != 0) skip(of - over);
  }
  std::size_t position() const noexcept { return at_; }
  // The next bytes as a cursor of their own.
  Hdf5Cursor part(std::size_t size) {
    const std::uint64_t from = address();
    return Hdf5Cursor(*bytes_, std::string(text(size)), from);
  }
  void expect(std::string_view mark, std::string_view what);  // Throws Corruption for other bytes.

  [[noreturn]] void corrupt(std::string_view what) const { bytes_->corrupt(address(), what); }
  const Hdf5Bytes& bytes() const noexcept { return *bytes_; }

 private:
  const Hdf5Bytes* bytes_;
  std::string block_;
  std::uint64_t address_ = 0;
  std::size_t at_ = 0;
};

}  // namespace plimsoll::internal
