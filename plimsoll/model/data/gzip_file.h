// GzipFile: a file read from its beginning, unpacked when it is gzipped.
//
// Throws NotFound when there is none, Corruption with the offset for a damaged or cut gzip stream, Error when it cannot
// be read. Thread safety: one thread at a time. Cost: zlib's buffers, 64 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plimsoll::internal {

class GzipFile {
 public:
  explicit GzipFile(std::string path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  std::size_t read(std::span<char> to);                      // Fewer than asked for only at the end.
  void read_exactly(std::span<std::byte> to);                // Corruption at the end.
  std::uint64_t offset() const noexcept { return offset_; }  // Unpacked.
  std::uint64_t packed_offset() const;                       // Of the file as it is on the disk, about.
  const std::string& path() const noexcept { return path_; }
  [[noreturn]] void corrupt(const std::string& what) const;

 private:
  const std::string path_;
  void* file_ = nullptr;
  std::uint64_t offset_ = 0;
};

}  // namespace plimsoll::internal
