// GzipFile: reads a file from its beginning, and decompresses it when it is gzipped.
//
// Throws NotFound when it does not exist, Corruption with the offset for a damaged or truncated gzip stream, Error when
// it cannot be read. Thread safety: one thread at a time. Cost: zlib's buffers, 64 KiB.
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

  std::size_t read(std::span<char> to);                      // Returns less than requested only at the end.
  void read_exactly(std::span<std::byte> to);                // Throws Corruption at the end.
  std::uint64_t offset() const noexcept { return offset_; }  // In the decompressed data.
  std::uint64_t packed_offset() const;                       // Approximate position in the file on disk.
  const std::string& path() const noexcept { return path_; }
  [[noreturn]] void corrupt(const std::string& what) const;

 private:
  const std::string path_;
  void* file_ = nullptr;
  std::uint64_t offset_ = 0;
};

}  // namespace plimsoll::internal
