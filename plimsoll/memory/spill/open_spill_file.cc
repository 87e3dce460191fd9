#include "plimsoll/memory/spill/open_spill_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/memory/spill/spill_file.h"

namespace plimsoll::internal {
namespace {

constexpr const char* kKind = "spill directory";
constexpr mode_t kOwnerOnly = 0600;

// Closes unless released.
struct Handle {
  int file;
  explicit Handle(int opened) noexcept : file(opened) {}
  ~Handle() {
    if (file >= 0) close(file);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

// The name of a file system whose files are memory, or nullptr.
const char* memory_file_system(std::uint64_t type) noexcept {
  if (type == TMPFS_MAGIC) return "tmpfs";
  if (type == RAMFS_MAGIC) return "ramfs";
  if (type == HUGETLBFS_MAGIC) return "hugetlbfs";
  return nullptr;
}

void require_disk(SpillIo& io, const std::filesystem::path& directory) {
  const Handle folder(io.open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (folder.file < 0 && errno == ENOTDIR)
    throw InvalidArgument(fmt::format("{} \"{}\": not a directory; name one on a disk", kKind, directory.native()));
  if (folder.file < 0) throw_system_error(kKind, directory.native(), "open", errno);
  SpillIo::FileSystem facts;
  if (io.file_system(folder.file, facts) != 0)
    throw_system_error(kKind, directory.native(), "find out the file system of", errno);
  if (const char* const name = memory_file_system(facts.type))
    throw InvalidArgument(
        fmt::format("{} \"{}\": its files are kept in memory ({}), so spilling there frees nothing; "
                    "name a directory on a disk",
                    kKind, directory.native(), name));
}

// Whether a failed open() means that the file system lacks the feature.
bool lacks_feature(int error) noexcept {
  return error == EINVAL || error == EOPNOTSUPP || error == EISDIR || error == ENOENT || error == ENOSYS;
}

// Returns -1 and sets errno when it fails.
int create_and_unlink(SpillIo& io, const std::filesystem::path& directory, int flags) {
  static std::atomic<unsigned> count{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::filesystem::path path = directory / fmt::format(".plimsoll-spill-{}-{}", getpid(), count++);
    const int file = io.open(path.c_str(), flags | O_CREAT | O_EXCL, kOwnerOnly);
    const int error = errno;
    if (file < 0 && error == EEXIST) continue;  // Left by a process that had our process id.
    // Some kernels create the file before they find that it cannot be opened for direct I/O.
    const bool removed = (file >= 0 || error == EINVAL) && io.unlink(path.c_str()) == 0;
    if (file >= 0 && removed) return file;
    if (file >= 0) {
      const int reason = errno;
      close(file);
      throw_system_error(kKind, directory.native(), "remove the name of a file in", reason);
    }
    errno = error;
    return -1;
  }
  errno = EEXIST;
  return -1;
}

}  // namespace

OpenedSpill open_spill_file(SpillIo& io, const std::filesystem::path& directory) {
  if (directory.empty())
    throw InvalidArgument("spill: no directory was named; name one on a disk, with room for what is spilled");
  require_disk(io, directory);
  int error = 0;
  for (const bool is_named : {false, true})
    for (const bool is_direct : {true, false}) {
      const int flags = O_RDWR | O_CLOEXEC | (is_direct ? O_DIRECT : 0);
      const int file = is_named ? create_and_unlink(io, directory, flags)
                                : io.open(directory.c_str(), flags | O_TMPFILE, kOwnerOnly);
      error = errno;
      if (file < 0 && !lacks_feature(error)) throw_system_error(kKind, directory.native(), "create a file in", error);
      if (file < 0) continue;
      if (!is_direct) {
        warn_of_page_cache(directory);
        return {file, false, 1};
      }
      const std::size_t alignment = io.address_alignment(file);
      return {file, true, std::has_single_bit(alignment) && alignment < kSpillAlignment ? alignment : kSpillAlignment};
    }
  throw_system_error(kKind, directory.native(), "create a file in", error);
}

void warn_of_page_cache(const std::filesystem::path& directory) noexcept {
  try {
    log_message(
        LogLevel::warning,
        fmt::format("{} \"{}\": the file system has no direct I/O; transfers pass through the page cache, which "
                    "is slower and takes memory for a moment",
                    kKind, directory.native()));
  } catch (const std::exception&) {  // No memory for the message.
  }
}

}  // namespace plimsoll::internal
