#include "plimsoll/memory/zero_pages.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll {

void* map_zero_pages(std::size_t bytes, const char* what) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data != MAP_FAILED) {
    madvise(data, bytes, MADV_NOHUGEPAGE);  // A huge page would cost 2 MiB where one record is written.
    return data;
  }
  OutOfMemoryDetails details;
  details.requested = bytes;
  details.what =
      fmt::format("{}: the system refused {} of address space; raise RLIMIT_AS or the system's overcommit limit", what,
                  format_bytes_exactly(bytes));
  throw OutOfMemory(std::move(details));  // Not by throw_refusal(): callers ask again for less.
}

void unmap_zero_pages(void* data, std::size_t bytes) noexcept { munmap(data, bytes); }

}  // namespace plimsoll
