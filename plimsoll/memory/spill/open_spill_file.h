// open_spill_file(): opens an unnamed file in a directory, for direct I/O where the file system supports it.
//
//   OpenedSpill opened = open_spill_file(SpillIo::system(), "scratch");   // the caller closes opened.file
//
// The file never has a name where the file system supports that (O_TMPFILE); elsewhere it is created under a unique
// name and unlinked at once. Only its owner can read and write it.
#pragma once

#include <cstddef>
#include <filesystem>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/spill/spill_io.h"

namespace plimsoll::internal {

struct OpenedSpill {
  int file = -1;
  bool is_direct = false;
  std::size_t address_alignment = 1;  // For memory read and written in place; 1 through the page cache.
};

// Throws as the constructor of SpillFile.
OpenedSpill open_spill_file(SpillIo& io, const std::filesystem::path& directory);

// Logs that transfers use the page cache, and why that matters.
void warn_of_page_cache(const std::filesystem::path& directory) noexcept;

}  // namespace plimsoll::internal
