// The page without its data, deflated; built from web/. Empty when the build could not make it.
#pragma once

#include <cstddef>
#include <span>

namespace plimsoll::internal {

struct PageTemplate {
  std::span<const unsigned char> deflated;
  std::size_t bytes;  // When inflated.
};

PageTemplate page_template() noexcept;

}  // namespace plimsoll::internal
