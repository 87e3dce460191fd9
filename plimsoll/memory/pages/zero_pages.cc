#include "plimsoll/memory/pages/zero_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {

ZeroPages try_map_zero_pages(std::size_t bytes, void* at) noexcept {
  ZeroPages pages;
  const int place = at ? MAP_FIXED_NOREPLACE : 0;
  // Not accessible at first: mlockall(MCL_FUTURE) would touch every page of a mapping that is.
  void* const data = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | place, -1, 0);
  if (data == MAP_FAILED) {
    pages.error = errno;
    return pages;
  }
  const auto refuse = [&](int error) {
    pages.error = error;
    munmap(data, bytes);
    return pages;
  };
  if (at && data != at) return refuse(EEXIST);
  pages.unlocked = madvise(data, 1, MADV_DONTNEED) != 0 && errno == EINVAL;  // So the kernel answers for locked pages.
  if (pages.unlocked && munlock(data, bytes) != 0) return refuse(errno);
  if (mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0) return refuse(errno);
  pages.may_be_huge = madvise(data, bytes, MADV_NOHUGEPAGE) != 0 && errno != EINVAL;  // A kernel without huge pages.
  pages.data = data;
  return pages;
}

void* map_zero_pages(std::size_t bytes, const char* what) {
  const ZeroPages pages = try_map_zero_pages(bytes);
  if (pages.data) return pages.data;
  OutOfMemoryDetails details;
  details.requested = bytes;
  details.what = fmt::format("{}: the system refused {} of address space; raise {}", what, format_bytes_exactly(bytes),
                             pages.error == EAGAIN ? "RLIMIT_MEMLOCK (ulimit -l) or do not call mlockall(MCL_FUTURE)"
                                                   : "RLIMIT_AS or the system's overcommit limit");
  throw OutOfMemory(std::move(details));  // Not by throw_refusal(): callers ask again for less.
}

void unmap_zero_pages(void* data, std::size_t bytes) noexcept { munmap(data, bytes); }

}  // namespace plimsoll::internal
