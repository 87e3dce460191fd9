// The two methods by which Linux moves pages inside an address range. See host_page_source.h.
#pragma once

#include <cstddef>
#include <memory>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

struct PageMove {
  std::size_t moved = 0;          // Bytes, from the start; what is left stays where it was, or is gone.
  bool lost_destination = false;  // What is mapped there may be another thread's by now: never touch it again.
};

class PageMoverBackend {
 public:
  virtual ~PageMoverBackend() = default;
  virtual PageMove move(std::byte* from, std::byte* to, std::size_t bytes) noexcept = 0;
  virtual const char* name() const noexcept = 0;
};

// nullptr when the kernel, a container's rules or the range do not allow it.
std::unique_ptr<PageMoverBackend> make_userfault_mover(std::byte* base, std::size_t bytes);

// All movers of this kind in the process share one allowance of mappings; each returns its part when it is destroyed.
std::unique_ptr<PageMoverBackend> make_remap_mover();

}  // namespace plimsoll::internal
