// ExportFile: an exporter's output, a file that appears whole or not at all, compressed when its name ends in .gz.
//
//   ExportFile file("run.pb.gz");
//   file.write(bytes);
//   file.commit();
#pragma once

#include <zlib.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "plimsoll/base/atomic_file.h"

namespace plimsoll::internal {

class ExportFile {
 public:
  explicit ExportFile(const std::filesystem::path& path);
  ~ExportFile();
  ExportFile(const ExportFile&) = delete;
  ExportFile& operator=(const ExportFile&) = delete;

  void write(std::string_view bytes);
  void commit();
  std::uint64_t bytes_written() const noexcept { return file_.bytes_written(); }

 private:
  void deflate_pending(int flush);

  AtomicFile file_;
  const bool is_compressed_;
  z_stream stream_{};
  std::string pending_;  // Collected up to a size at which compressing or writing pays.
};

}  // namespace plimsoll::internal
