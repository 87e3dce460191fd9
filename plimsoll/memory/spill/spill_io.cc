#include "plimsoll/memory/spill/spill_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace plimsoll::internal {

SpillIo::~SpillIo() = default;

SpillIo& SpillIo::system() {
  static auto* const io = new SpillIo;  // Never destroyed: files may outlive static destructors.
  return *io;
}

int SpillIo::open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }

int SpillIo::unlink(const char* path) { return ::unlink(path); }

int SpillIo::file_system(int file, FileSystem& facts) {
  struct statfs found {};
  if (fstatfs(file, &found) != 0) return -1;
  facts.type = static_cast<std::uint64_t>(found.f_type) & 0xffffffff;
  facts.free_bytes = static_cast<std::uint64_t>(found.f_bavail) * static_cast<std::uint64_t>(found.f_bsize);
  return 0;
}

std::size_t SpillIo::address_alignment([[maybe_unused]] int file) {
#ifdef STATX_DIOALIGN
  struct statx found {};
  if (statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) == 0 && (found.stx_mask & STATX_DIOALIGN) != 0)
    return found.stx_dio_mem_align;
#endif
  return 0;
}

int SpillIo::allocate(int file, std::uint64_t offset, std::uint64_t bytes) {
  return fallocate(file, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

ssize_t SpillIo::write(int file, const std::byte* from, std::size_t bytes, std::uint64_t offset) {
  return pwrite(file, from, bytes, static_cast<off_t>(offset));
}

ssize_t SpillIo::read(int file, std::byte* to, std::size_t bytes, std::uint64_t offset) {
  return pread(file, to, bytes, static_cast<off_t>(offset));
}

int SpillIo::use_page_cache(int file) {
  const int flags = fcntl(file, F_GETFL);
  return flags < 0 ? -1 : fcntl(file, F_SETFL, flags & ~O_DIRECT);
}

int SpillIo::drop_from_cache(int file, std::uint64_t offset, std::uint64_t bytes) {
  const auto from = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
  constexpr unsigned kWriteOut = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (sync_file_range(file, from, length, kWriteOut) != 0) return -1;
  errno = posix_fadvise(file, from, length, POSIX_FADV_DONTNEED);
  return errno == 0 ? 0 : -1;
}

std::thread SpillIo::start_thread(void (*body)(void*), void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // The new thread inherits it.
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  std::thread started(body, argument);
  pthread_setname_np(started.native_handle(), "plimsoll-spill");
  return started;
}

}  // namespace plimsoll::internal
