#include "plimsoll/io/internal/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {

InputFile::InputFile(const std::filesystem::path& path) : name_(path.native()) {
  handle_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle_ < 0) throw_system_error("file", name_, "open", errno);
  struct stat status {};
  int error = fstat(handle_, &status) != 0 ? errno : 0;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error != 0) {
    close(std::exchange(handle_, -1));
    throw_system_error("file", name_, "read", error);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : name_(std::move(other.name_)),
      memory_(other.memory_),
      size_(other.size_),
      handle_(std::exchange(other.handle_, -1)) {}

InputFile::~InputFile() {
  if (handle_ >= 0) close(handle_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  if (offset > size_ || bytes.size() > size_ - offset)
    corrupt(offset, fmt::format("ends at {}, {} bytes are missing", size_,
                                offset > size_ ? bytes.size() : bytes.size() - (size_ - offset)));
  if (memory_) {
    std::memcpy(bytes.data(), memory_ + offset, bytes.size());
    return;
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(handle_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("file", name_, "read", errno);
    if (got == 0) corrupt(offset + done, "became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
}

std::string InputFile::read_string(std::uint64_t offset, std::uint64_t bytes, std::uint64_t max_bytes) const {
  if (bytes > max_bytes)
    throw Unsupported(fmt::format("file \"{}\": {} bytes in one piece at offset {}; at most {} are read", name_, bytes,
                                  offset, max_bytes));
  if (offset > size_ || bytes > size_ - offset)
    corrupt(offset, fmt::format("ends at {}, before the {} bytes it names", size_, bytes));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

void InputFile::corrupt(std::uint64_t offset, std::string_view what) const {
  throw Corruption(fmt::format("file \"{}\": {} (offset {})", name_, what, offset));
}

}  // namespace plimsoll::internal
