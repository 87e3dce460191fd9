#include "plimsoll/device/host_backend.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::internal {

void fill_on_host(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (pattern == 0) {
    std::memset(to, 0, bytes);
    return;
  }
  auto* const first = static_cast<std::byte*>(to);
  std::size_t done = std::min(element_bytes, bytes);
  std::memcpy(first, &pattern, done);
  for (; done < bytes; done *= 2) std::memcpy(first + done, first, std::min(done, bytes - done));
}

void HostBackend::copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void HostBackend::fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept {
  fill_on_host(to, pattern, element_bytes, bytes);
}

}  // namespace plimsoll::internal
