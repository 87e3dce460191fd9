#include "plimsoll/observe/live/live_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {
namespace {

constexpr char kMagic[8] = {'P', 'L', 'I', 'M', 'L', 'I', 'V', 'E'};
constexpr std::uint32_t kVersion = 1;
constexpr int kTries = 50;  // Publishing takes a few microseconds.

struct Header {
  char magic[8] = {};
  std::uint32_t version = kVersion, process = 0, bytes = sizeof(LiveCounters), checksum = 0;
  std::uint64_t sequence = 0;
};
static_assert(sizeof(Header) == 32);

struct Whole {
  Header header;
  LiveCounters counters;
};
static_assert(sizeof(Whole) == sizeof(Header) + sizeof(LiveCounters));

std::uint32_t checksum_of(const LiveCounters& counters) { return crc32c(std::as_bytes(std::span(&counters, 1))); }

void require_own(int folder, const std::filesystem::path& path) {
  struct stat status {};
  if (fstat(folder, &status) != 0) throw_system_error("live", path.string(), "look at", errno);
  if (status.st_uid != geteuid() || !S_ISDIR(status.st_mode))
    throw FailedPrecondition(
        fmt::format("live \"{}\": the folder belongs to user {}, this process runs as {}; set XDG_RUNTIME_DIR to a "
                    "folder of its own",
                    path.string(), status.st_uid, geteuid()));
}

// Whether a living process holds the file: it is locked.
bool is_held(int file) {
  if (flock(file, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK || errno == EINTR;
  flock(file, LOCK_UN);
  return false;
}

class OpenFile {
 public:
  OpenFile(int folder, const std::string& name)
      : file_(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (file_ >= 0) close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int file() const noexcept { return file_; }
  bool is_own() const {
    struct stat status {};
    return fstat(file_, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 077) == 0;
  }

 private:
  int file_;
};

bool read_at(int file, void* into, std::size_t bytes) {
  return pread(file, into, bytes, 0) == static_cast<ssize_t>(bytes);
}

std::optional<LiveCounters> read_counters(int file) {
  const auto whole = std::make_unique<Whole>();
  for (int i = 0; i < kTries; ++i) {
    Header after;
    if (!read_at(file, whole.get(), sizeof(Whole)) || !read_at(file, &after, sizeof(after))) return std::nullopt;
    const Header& header = whole->header;
    if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.version != kVersion ||
        header.bytes != sizeof(LiveCounters))
      return std::nullopt;
    if (header.sequence % 2 == 0 && header.sequence == after.sequence &&
        header.checksum == checksum_of(whole->counters)) {
      if (!is_sound(whole->counters)) return std::nullopt;
      return whole->counters;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return std::nullopt;
}

// Returns nothing for a dead process, and removes its file and socket.
std::optional<LiveCounters> read_or_remove(int folder, const std::string& name) {
  const OpenFile file(folder, name);
  if (file.file() < 0 || !file.is_own()) return std::nullopt;
  if (is_held(file.file())) {
    auto counters = read_counters(file.file());
    if (counters && std::to_string(counters->process) != name) counters.reset();
    return counters;
  }
  unlinkat(folder, name.c_str(), 0);
  unlinkat(folder, (name + ".socket").c_str(), 0);
  return std::nullopt;
}

}  // namespace

LiveFolder::LiveFolder(bool make) {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (!runtime || runtime[0] != '/')
    throw FailedPrecondition(
        "live: XDG_RUNTIME_DIR is not set to a folder; processes publish their counters there, and nowhere else (after "
        "a login it is /run/user/NUMBER; in a container: mkdir -m 700 DIR, and set it to DIR)");
  path_ = std::filesystem::path(runtime) / "plimsoll";
  const int above = open(runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above < 0) throw_system_error("live", runtime, "open", errno);
  try {
    require_own(above, runtime);
    if (make && mkdirat(above, "plimsoll", 0700) != 0 && errno != EEXIST)
      throw_system_error("live", path_.string(), "make", errno);
    file_ = openat(above, "plimsoll", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file_ < 0 && (make || errno != ENOENT)) throw_system_error("live", path_.string(), "open", errno);
    if (file_ >= 0) require_own(file_, path_);
    if (make) fchmod(file_, 0700);
  } catch (...) {
    close(above);
    if (file_ >= 0) close(file_);
    throw;
  }
  close(above);
}

LiveFolder::~LiveFolder() {
  if (file_ >= 0) close(file_);
}

// The file is locked and complete before it gets its name, so that nobody mistakes it for a dead process's.
LiveFile::LiveFile() : folder_(true), process_(getpid()), name_(std::to_string(process_)) {
  {
    const OpenFile before(folder_.file(), name_);
    if (before.file() >= 0 && is_held(before.file()))
      throw FailedPrecondition(
          fmt::format("live \"{}\": a living process publishes under this number; end its LiveView, "
                      "or give each container an XDG_RUNTIME_DIR of its own",
                      path().string()));
  }
  const std::string fresh = name_ + ".new";
  unlinkat(folder_.file(), fresh.c_str(), 0);
  file_ = openat(folder_.file(), fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file_ < 0) throw_system_error("live", path().string(), "make", errno);
  int error = 0;
  if (fchmod(file_, 0600) != 0 || flock(file_, LOCK_EX | LOCK_NB) != 0) error = errno;
  if (error == 0) {
    LiveCounters first;
    first.process = static_cast<std::uint32_t>(process_);
    publish(first);
    if (renameat(folder_.file(), fresh.c_str(), folder_.file(), name_.c_str()) != 0) error = errno;
  }
  if (error == 0) return;
  unlinkat(folder_.file(), fresh.c_str(), 0);
  close(file_);
  throw_system_error("live", path().string(), "make", error);
}

LiveFile::~LiveFile() {
  remove();
  if (file_ >= 0) close(file_);
}

void LiveFile::leave_to_parent() noexcept {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

void LiveFile::remove() noexcept {
  if (getpid() == process_) unlinkat(folder_.file(), name_.c_str(), 0);
}

void LiveFile::publish(const LiveCounters& counters) noexcept {
  Header header{.process = static_cast<std::uint32_t>(process_), .checksum = checksum_of(counters)};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  const auto write = [&](const void* bytes, std::size_t size, std::size_t at) {
    return pwrite(file_, bytes, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  };
  header.sequence = ++sequence_;  // Odd: do not read.
  const bool written = write(&header, sizeof(header), 0) && write(&counters, sizeof(counters), sizeof(header));
  header.sequence = ++sequence_;
  if (written) static_cast<void>(write(&header, sizeof(header), 0));  // Else readers see an odd number until it works.
}

std::vector<LiveCounters> read_live_processes() {
  std::vector<LiveCounters> processes;
  const LiveFolder folder(false);
  if (folder.file() < 0) return processes;
  std::vector<std::string> names;
  if (DIR* const list = fdopendir(dup(folder.file()))) {
    while (const dirent* const entry = readdir(list)) names.emplace_back(entry->d_name);
    closedir(list);
  }
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 10 || name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto counters = read_or_remove(folder.file(), name)) processes.push_back(*counters);
  }
  std::sort(processes.begin(), processes.end(),
            [](const LiveCounters& a, const LiveCounters& b) { return a.process < b.process; });
  return processes;
}

std::optional<LiveCounters> read_live_process(int process) {
  const LiveFolder folder(false);
  if (folder.file() < 0 || process <= 0) return std::nullopt;
  return read_or_remove(folder.file(), std::to_string(process));
}

}  // namespace plimsoll::internal
