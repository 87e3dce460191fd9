// The two ways in which Linux moves pages inside an address range. See host_page_source.h.
#pragma once

#include <cstddef>
#include <memory>

namespace plimsoll {

class PageMoverBackend {
 public:
  virtual ~PageMoverBackend() = default;
  // Bytes moved from the start; what is left stays where it was.
  virtual std::size_t move(std::byte* from, std::byte* to, std::size_t bytes) noexcept = 0;
  virtual const char* name() const noexcept = 0;
};

// nullptr when the kernel, a container's rules or the range do not allow it.
std::unique_ptr<PageMoverBackend> make_userfault_mover(std::byte* base, std::size_t bytes);
std::unique_ptr<PageMoverBackend> make_remap_mover(std::byte* base, std::size_t bytes);

}  // namespace plimsoll
