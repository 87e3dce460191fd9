// HostBackend: this process's own memory, where kernels run at once. Hot paths do not use it: see Device::is_host().
#pragma once

#include "plimsoll/device/backend.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll::internal {

class HostBackend final : public DeviceBackend {
 public:
  using DeviceBackend::host_address;
  PageSource& pages() noexcept override { return pages_; }
  bool is_reachable() const noexcept override { return true; }
  std::byte* host_address(void* address) const noexcept override { return static_cast<std::byte*>(address); }
  void copy_in(void* to, const void* from, std::size_t bytes) noexcept override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) noexcept override;
  void fill(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept override;
  void finish() override {}

 private:
  HostPageSource pages_;
};

// Repeats the first `element_bytes` of `pattern`.
void fill_on_host(void* to, std::uint64_t pattern, std::size_t element_bytes, std::size_t bytes) noexcept;

}  // namespace plimsoll::internal
