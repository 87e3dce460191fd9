// Reads large data with its checksum, on all threads: one processor copies and sums more slowly than disk or memory
// delivers.
//
//   std::uint32_t crc = read_with_crc(file, offset, bytes);          // into memory
//   std::uint32_t crc = crc_of_file(file, offset, size);             // through staging only
//
// Thread safety: any thread. The result does not depend on the number of threads. Throws as InputFile::read().
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/io/internal/input_file.h"

namespace plimsoll::internal {

std::uint32_t read_with_crc(const InputFile& file, std::uint64_t offset, std::span<std::byte> bytes);

// Its staging (staging.h) has one piece per thread, as far as the budget allows.
std::uint32_t crc_of_file(const InputFile& file, std::uint64_t offset, std::uint64_t size);

}  // namespace plimsoll::internal
