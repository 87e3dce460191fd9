// SpillIo: the system calls of a SpillFile in one place, so that tests can make any of them fail.
//
//   struct FullDisk : SpillIo {
//     int allocate(int, std::uint64_t, std::uint64_t) override { return errno = ENOSPC, -1; }
//   } io;
//   SpillFile file({.directory = "scratch", .io = &io});
//
// Each does what the system call does: it returns -1 and sets errno when it fails. Thread safety: called from any
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <thread>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class SpillIo {
 public:
  virtual ~SpillIo();

  virtual int open(const char* path, int flags, mode_t mode);
  virtual int unlink(const char* path);

  struct FileSystem {
    std::uint64_t type = 0;        // As <linux/magic.h> names them.
    std::uint64_t free_bytes = 0;  // For this user.
  };
  virtual int file_system(int file, FileSystem& facts);
  // The alignment that direct I/O requires of memory; 0 when the system does not report it.
  virtual std::size_t address_alignment(int file);

  virtual int allocate(int file, std::uint64_t offset, std::uint64_t bytes);
  virtual ssize_t write(int file, const std::byte* from, std::size_t bytes, std::uint64_t offset);
  virtual ssize_t read(int file, std::byte* to, std::size_t bytes, std::uint64_t offset);

  virtual int use_page_cache(int file);                                              // Switches to the page cache.
  virtual int drop_from_cache(int file, std::uint64_t offset, std::uint64_t bytes);  // After writing it out.

  // With all signals blocked. Throws std::system_error.
  virtual std::thread start_thread(void (*body)(void*), void* argument);

  static SpillIo& system();
};

}  // namespace plimsoll::internal
