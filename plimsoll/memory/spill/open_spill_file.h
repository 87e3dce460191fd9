// open_spill_file(): an unnamed file in a directory, for direct I/O where the file system has it.
//
//   OpenedSpill opened = open_spill_file(SpillIo::system(), "scratch");   // opened.file is the caller's to close
//
// The file never has a name where the file system can do that (O_TMPFILE); elsewhere it is created under a name of its
// own, exclusively, and the name is removed at once. Readable and writable by its owner only.
#pragma once

#include <cstddef>
#include <filesystem>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/spill/spill_io.h"

namespace plimsoll::internal {

struct OpenedSpill {
  int file = -1;
  bool is_direct = false;
  std::size_t address_alignment = 1;  // Of memory that is read and written in place; 1 through the page cache.
};

// Throws as the constructor of SpillFile.
OpenedSpill open_spill_file(SpillIo& io, const std::filesystem::path& directory);

// Says in the log that transfers pass through the page cache, and why that matters.
void warn_of_page_cache(const std::filesystem::path& directory) noexcept;

}  // namespace plimsoll::internal
