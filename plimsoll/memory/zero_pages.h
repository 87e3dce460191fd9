// Zeroed address space for the memory layer's own records: it costs real memory only where it was written.
#pragma once

#include <cstddef>

namespace plimsoll {

// Throws OutOfMemory, saying what it was for.
void* map_zero_pages(std::size_t bytes, const char* what);
void unmap_zero_pages(void* data, std::size_t bytes) noexcept;

}  // namespace plimsoll
