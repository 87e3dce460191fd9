#include "plimsoll/observe/internal/export_file.h"

#include <array>
#include <cstddef>
#include <new>

namespace plimsoll::internal {
namespace {

constexpr std::size_t kPendingBytes = 1 << 18;
constexpr int kGzipWindow = 15 + 16;

}  // namespace

ExportFile::ExportFile(const std::filesystem::path& path) : file_(path), is_compressed_(path.extension() == ".gz") {
  if (is_compressed_ && deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, 0) != Z_OK)
    throw std::bad_alloc();
}

ExportFile::~ExportFile() {
  if (is_compressed_) deflateEnd(&stream_);
}

void ExportFile::write(std::string_view bytes) {
  pending_ += bytes;
  if (pending_.size() < kPendingBytes) return;
  if (is_compressed_)
    deflate_pending(Z_NO_FLUSH);
  else
    file_.write(pending_);
  pending_.clear();
}

void ExportFile::deflate_pending(int flush) {
  std::array<char, 1 << 16> out;
  stream_.next_in = reinterpret_cast<Bytef*>(pending_.data());
  stream_.avail_in = static_cast<uInt>(pending_.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    deflate(&stream_, flush);
    file_.write(std::string_view(out.data(), out.size() - stream_.avail_out));
  } while (stream_.avail_out == 0);
}

void ExportFile::commit() {
  if (is_compressed_)
    deflate_pending(Z_FINISH);
  else
    file_.write(pending_);
  pending_.clear();
  file_.commit();
}

}  // namespace plimsoll::internal
