#include "plimsoll/model/data/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {

GzipFile::GzipFile(std::string path) : path_(std::move(path)) {
  if (std::filesystem::is_directory(path_)) throw InvalidArgument(fmt::format("{}: is a folder; name a file", path_));
  file_ = ::gzopen(path_.c_str(), "rb");
  if (file_ == nullptr && errno == ENOENT)
    throw NotFound(fmt::format("{}: there is no such file{}", path_, url_hint(path_)));
  if (file_ == nullptr) throw Error(fmt::format("{}: cannot be opened ({})", path_, std::strerror(errno)));
  ::gzbuffer(static_cast<gzFile>(file_), 32 << 10);
}

GzipFile::~GzipFile() { ::gzclose_r(static_cast<gzFile>(file_)); }

void GzipFile::corrupt(const std::string& what) const {
  throw Corruption(fmt::format("{}: {} (offset {})", path_, what, offset_));
}

std::size_t GzipFile::read(std::span<char> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto wanted = static_cast<unsigned>(std::min<std::size_t>(to.size() - done, 1u << 30));
    const int count = ::gzread(static_cast<gzFile>(file_), to.data() + done, wanted);
    if (count < 0) {
      int code = 0;
      const char* text = ::gzerror(static_cast<gzFile>(file_), &code);
      if (code == Z_ERRNO) throw Error(fmt::format("{}: cannot be read ({})", path_, std::strerror(errno)));
      corrupt(fmt::format("the gzip stream is damaged: {}", text));
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
    offset_ += static_cast<std::uint64_t>(count);
  }
  // zlib reports a truncated stream only at its end.
  int code = 0;
  if (done < to.size()) ::gzerror(static_cast<gzFile>(file_), &code);
  if (code == Z_BUF_ERROR) corrupt("the gzip stream ends too early");
  return done;
}

std::uint64_t GzipFile::packed_offset() const {
  const auto at = ::gzoffset(static_cast<gzFile>(file_));
  return at < 0 ? 0 : static_cast<std::uint64_t>(at);
}

void GzipFile::read_exactly(std::span<std::byte> to) {
  const std::size_t done = read({reinterpret_cast<char*>(to.data()), to.size()});
  if (done < to.size()) corrupt(fmt::format("it ends {} bytes too early", to.size() - done));
}

}  // namespace plimsoll::internal
