#include "plimsoll/base/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr mode_t kPermissionBits = 07777;

// The file at the end of a chain of links, whether it exists or not.
std::filesystem::path follow_links(std::filesystem::path path) {
  std::error_code ignored;
  for (int depth = 0; depth < 40 && std::filesystem::is_symlink(path, ignored); ++depth)
    path = path.parent_path() / std::filesystem::read_symlink(path, ignored);
  return path;
}

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> count{0};
  std::filesystem::path name = target;
  name += fmt::format(".tmp-{}-{}", getpid(), count++);
  return name;
}

// Whether temporary_name() could have made this name.
bool is_temporary(std::string_view name) {
  const std::size_t mark = name.rfind(".tmp-");
  if (mark == std::string_view::npos) return false;
  const std::string_view numbers = name.substr(mark + 5);
  const std::size_t dash = numbers.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Removes it unless an AtomicFile still holds it. Returns whether it was removed.
bool remove_when_stale(const std::filesystem::path& temporary) {
  const int handle = open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (handle < 0) return false;
  const bool removed = flock(handle, LOCK_EX | LOCK_NB) == 0 && unlink(temporary.c_str()) == 0;
  close(handle);
  return removed;
}

// Some file systems cannot sync a directory; they report EINVAL, which is ignored.
bool sync_directory(const std::filesystem::path& directory) {
  const int handle = open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return false;
  const bool synced = fsync(handle) == 0 || errno == EINVAL;
  const int error = errno;
  close(handle);
  errno = error;
  return synced;
}

bool is_device_or_pipe(const std::filesystem::path& path) {
  struct stat now {};
  return stat(path.c_str(), &now) == 0 && !S_ISREG(now.st_mode) && !S_ISDIR(now.st_mode);
}

}  // namespace

// A device or a pipe (/dev/stdout) is written, never replaced: then there is no temporary.
AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path), target_(follow_links(path)) {
  if (!target_.has_filename() || std::filesystem::is_directory(target_))
    throw_system_error("file", path_.native(), "create", EISDIR);
  buffer_.reserve(kBufferBytes);
  if (is_device_or_pipe(path_)) {
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) throw_system_error("file", path_.native(), "open", errno);
    return;
  }
  open_temporary();
  struct stat before {};
  if (stat(target_.c_str(), &before) == 0 && fchmod(file_, before.st_mode & kPermissionBits) != 0)
    fail("set permissions");
}

// A killed process that had our process id may have left a file of this name behind. Until ours is locked, a clean-up
// of such files could remove it.
void AtomicFile::open_temporary() {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary_ = temporary_name(target_);
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) break;
    if (file_ < 0) continue;
    struct stat now {};
    const bool locked =
        flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;  // Or the file system has no locks.
    if (locked && fstat(file_, &now) == 0 && now.st_nlink > 0) return;
    close(std::exchange(file_, -1));
    errno = EEXIST;
  }
  throw_system_error("file", path_.native(), "create", errno);
}

AtomicFile::~AtomicFile() { give_up(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  require_open("write");
  bytes_written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) return put(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void AtomicFile::commit() {
  require_open("commit");
  flush();
  const std::filesystem::path directory =
      target_.parent_path();  // Before the rename: nothing may be allocated after it.
  const bool is_replaced = !temporary_.empty();
  if (is_replaced && fsync(file_) != 0) fail("sync");
  if (close(std::exchange(file_, -1)) != 0) {
    const int error = errno;
    if (is_replaced) unlink(temporary_.c_str());
    throw_system_error("file", path_.native(), "close", error);
  }
  if (!is_replaced) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    throw_system_error("file", path_.native(), "replace", error);
  }
  if (!sync_directory(directory)) throw_system_error("file", path_.native(), "sync the directory of", errno);
}

void AtomicFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void AtomicFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      const std::string verb =
          fmt::format("write {} bytes after the first {}", bytes.size(), lseek(file_, 0, SEEK_CUR));
      errno = error;
      fail(verb.c_str());
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::give_up() noexcept {
  if (file_ < 0) return;
  close(std::exchange(file_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::require_open(const char* verb) const {
  if (file_ < 0)
    throw FailedPrecondition(
        fmt::format("file \"{}\": cannot {}: already committed or abandoned; open it again", path_.native(), verb));
}

void AtomicFile::fail(const char* verb) {
  const int error = errno;
  give_up();
  throw_system_error("file", path_.native(), verb, error);
}

std::vector<std::string> list_directory(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(directory.empty() ? "." : directory.c_str()), closedir);
  if (!opened) return names;
  while (const dirent* entry = readdir(opened.get()))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  return names;
}

std::size_t remove_stale_temporaries(const std::filesystem::path& directory, std::string_view target_prefix) {
  std::size_t removed = 0;
  for (const std::string& name : list_directory(directory))
    if (name.starts_with(target_prefix) && is_temporary(name)) removed += remove_when_stale(directory / name) ? 1 : 0;
  return removed;
}

std::string read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_system_error("file", path.native(), "open", errno);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&file, [](const int* handle) { close(*handle); });
  struct stat now {};
  std::string text;
  if (fstat(file, &now) == 0 && S_ISREG(now.st_mode) && now.st_size > 0)  // A byte more shows that it has not grown.
    text.resize(std::min(static_cast<std::size_t>(now.st_size), max_bytes) + 1);
  for (std::size_t used = 0;;) {
    // One byte more than allowed shows whether the file is too large or just fits.
    if (used == text.size()) text.resize(std::min(std::max<std::size_t>(2 * used, 4096), max_bytes + 1));
    const ssize_t got = read(file, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_system_error("file", path.native(), "read", errno);
    used += static_cast<std::size_t>(got);
    if (used > max_bytes)
      throw InvalidArgument(
          fmt::format("file \"{}\": larger than the {} bytes allowed here", path.native(), max_bytes));
    if (got > 0) continue;
    text.resize(used);
    return text;
  }
}

}  // namespace plimsoll::internal
