#include "plimsoll/io/internal/parallel_read.h"

#include <mutex>
#include <vector>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/staging.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint64_t kChunkBytes = 8 * kPieceBytes;  // What a thread reads at once: long runs suit disks.

// The checksum of `size` bytes from those of its chunks, which `f(at, bytes)` returns, on any thread.
template <class F>
std::uint32_t crc_of_chunks(std::uint64_t size, F&& f) {
  if (size <= kChunkBytes) return f(std::uint64_t{0}, size);
  const std::uint64_t chunks = divide_up(size, kChunkBytes);
  const auto bytes_of = [&](std::uint64_t chunk) { return std::min(kChunkBytes, size - chunk * kChunkBytes); };
  std::vector<std::uint32_t> crcs(static_cast<std::size_t>(chunks));
  parallel_for(static_cast<std::int64_t>(chunks), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto chunk = static_cast<std::uint64_t>(begin); chunk < static_cast<std::uint64_t>(end); ++chunk)
      crcs[chunk] = f(chunk * kChunkBytes, bytes_of(chunk));
  });
  std::uint32_t crc = 0;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) crc = combine_crc32c(crc, crcs[chunk], bytes_of(chunk));
  return crc;
}

// Equal parts of the staging, each for one thread at a time.
class StagingParts {
 public:
  StagingParts(const Staging& staging, std::size_t parts) {
    const std::size_t each = staging.bytes().size() / parts;
    for (std::size_t i = 0; i < parts; ++i) free_.push_back(staging.bytes().subspan(i * each, each));
  }
  std::span<std::byte> take() {
    const std::lock_guard lock(mutex_);
    const std::span<std::byte> part = free_.back();
    free_.pop_back();
    return part;
  }
  void give_back(std::span<std::byte> part) {
    const std::lock_guard lock(mutex_);
    free_.push_back(part);  // There is room: it was taken from here.
  }

 private:
  std::mutex mutex_;
  std::vector<std::span<std::byte>> free_;  // Guarded by mutex_.
};

std::uint32_t crc_through(const InputFile& file, std::uint64_t offset, std::uint64_t size,
                          std::span<std::byte> staging) {
  std::uint32_t crc = 0;
  for_each_piece(size, staging.size(), [&](std::uint64_t at, std::size_t bytes) {
    file.read(offset + at, staging.first(bytes));
    crc = crc32c(staging.first(bytes), crc);
  });
  return crc;
}

}  // namespace

std::uint32_t read_with_crc(const InputFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  return crc_of_chunks(bytes.size(), [&](std::uint64_t at, std::uint64_t size) {
    std::uint32_t crc = 0;
    for_each_piece(size, kPieceBytes, [&](std::uint64_t inside, std::size_t piece) {
      const std::span<std::byte> part = bytes.subspan(static_cast<std::size_t>(at + inside), piece);
      file.read(offset + at + inside, part);
      crc = crc32c(part, crc);
    });
    return crc;
  });
}

std::uint32_t crc_of_file(const InputFile& file, std::uint64_t offset, std::uint64_t size) {
  const auto threads = static_cast<std::size_t>(size <= kChunkBytes ? 1 : num_threads());
  const Staging staging(threads * kPieceBytes);
  if (threads == 1 || staging.bytes().size() < threads * kPieceBytes || in_parallel_region())
    return crc_through(file, offset, size, staging.bytes());
  StagingParts parts(staging, threads);
  return crc_of_chunks(size, [&](std::uint64_t at, std::uint64_t bytes) {
    const std::span<std::byte> part = parts.take();
    struct ReturnPart {
      StagingParts& parts;
      std::span<std::byte> part;
      ~ReturnPart() { parts.give_back(part); }
    } const give_back{parts, part};
    return crc_through(file, offset + at, bytes, part);
  });
}

}  // namespace plimsoll::internal
