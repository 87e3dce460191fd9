#include "plimsoll/io/internal/file_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "plimsoll/base/system_error.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/map_storage.h"

namespace plimsoll::internal {

StorageRef map_file(const InputFile& file, std::uint64_t offset, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t before = offset % page;
  const auto mapped = static_cast<std::size_t>(before + bytes);
  void* const base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.handle(),
                          static_cast<off_t>(offset - before));
  if (base == MAP_FAILED) throw_system_error("file", file.name(), "map", errno);
  return wrap_unchanging(current_host_device(), static_cast<std::byte*>(base) + before, static_cast<std::size_t>(bytes),
                         [base, mapped](void*) { munmap(base, mapped); });
}

}  // namespace plimsoll::internal
