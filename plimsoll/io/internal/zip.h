// Zip archives, as far as .npz and .keras need them: stored and deflated members, zip64; no encryption, no split
// archives.
//
//   std::vector<ZipMember> members = read_zip_directory(file);
//   ZipMemberReader in(file, members[0]);  in.read(bytes);  in.finish();     // checks the CRC-32
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/staging.h"

namespace plimsoll::internal {

struct ZipMember {
  std::string name;
  std::uint64_t header_offset = 0, compressed_size = 0, size = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0, flags = 0;
  std::uint64_t end = 0;  // Where the next one begins, or the directory.

  bool is_deflated() const noexcept { return method == 8; }
};

// Throws Corruption; Unsupported for archives in several files.
std::vector<ZipMember> read_zip_directory(const InputFile& file);

// A member's bytes, in order.
class ZipMemberReader {
 public:
  // Throws Unsupported for other methods and encryption, Corruption.
  ZipMemberReader(const InputFile& file, const ZipMember& member);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;

  std::uint64_t left() const noexcept { return member_.size - position_; }
  std::uint64_t data_offset() const noexcept { return data_offset_; }  // In the file.
  void read(std::span<std::byte> bytes);                               // Throws Corruption when there are fewer.
  void finish();                                                       // Reads the rest, if any, and checks the CRC-32.

 private:
  void inflate_into(std::span<std::byte> bytes);
  [[noreturn]] void corrupt(std::uint64_t offset, std::string_view what) const;

  struct Inflater;
  const InputFile& file_;
  const ZipMember& member_;
  std::uint64_t data_offset_ = 0, position_ = 0, consumed_ = 0;
  std::uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

// Writes stored members, with zip64 where necessary.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file) : file_(file) {}
  // The member is head and body together.
  void add(const std::string& name, std::string_view head, std::span<const std::byte> body);
  // The member is everything that `parts` emits. It is called twice and must emit the same both times: for the
  // checksum, and to write it. Its first byte is at a multiple of `alignment` in the file.
  using Sink = FunctionRef<void(std::span<const std::byte>)>;
  void add_parts(const std::string& name, FunctionRef<void(Sink)> parts, std::size_t alignment);
  void finish();

 private:
  AtomicFile& file_;
  std::vector<ZipMember> members_;
};

}  // namespace plimsoll::internal
