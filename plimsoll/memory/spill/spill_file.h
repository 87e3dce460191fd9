// SpillFile: stores bytes that a budget has no room for in a directory that the user names.
//
//   SpillFile file({.directory = "scratch", .limit = 2_GiB});
//   SpillSlot slot = file.reserve(64_MiB);   // reserves disk space now, or refuses and changes nothing
//   slot.store(bytes);                       // begins; do not change `bytes` until wait()
//   ...                                      // computes meanwhile
//   slot.wait();                             // stored: only now do the bytes count as free
//   slot.load(elsewhere);                    // begins to load them
//   slot.wait();                             // loaded, and the checksum was right
//
// The file has no name, so nothing is left behind however the process ends; it is as private as the process's memory
// and not encrypted. A thread of its own, with all signals blocked, performs the transfers of all slots in the order in
// which they began. wait() reports a transfer that failed: a failed store leaves the source as the only copy and the
// slot empty, a failed load leaves the slot unchanged, so that it can be tried again.
//
// I/O is direct and bypasses the page cache, which would count against the process's memory. Where the file system does
// not support that, a warning is logged, and pages are written out and dropped from the cache after each piece. Memory
// whose address is a multiple of address_alignment() is read and written in place, except for a last part of less than
// 4 KiB. Other memory passes through the staging block, which the caller provides and is charged for.
//
// Thread safety: a SpillFile may be used from any thread, a slot by one thread at a time. Copies of a SpillFile are the
// same file; slots keep it open. Cost: store(), load() and wait() allocate nothing; the file takes about 10 KiB of
// memory and a slot about 200 bytes. After fork() the child may destroy files and slots but not use them
// (FailedPrecondition); fork() itself waits for the current piece (at most 4 MiB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class SpillIo;
class SpillSlot;

struct SpillOptions {
  std::filesystem::path directory;    // No default: users' data is written only where they said.
  std::size_t limit = SIZE_MAX;       // The most bytes of all slots together, each rounded up to 4 KiB.
  std::span<std::byte> staging{};     // For memory that is not aligned: as many pages at kSpillAlignment as one likes,
                                      // outliving the file and its slots. Without it such memory is refused.
  std::size_t own_staging_bytes = 0;  // The same, a block of the file's own: whole pages.
  SpillIo* io = nullptr;              // Default: the system's; for tests. Outlives the file and its slots.
};

// Sizes and offsets in the file are multiples of it. Buffers that begin at a multiple of it are never staged, and when
// their sizes are multiples too, they take one request per piece.
inline constexpr std::size_t kSpillAlignment = 4096;

struct SpillStats {
  std::size_t reserved_bytes = 0;  // Of all slots, each rounded up to 4 KiB.
  std::size_t file_bytes = 0;      // Disk space used: the most that was reserved at once, and holes.
  std::uint64_t stored_bytes = 0;  // By completed stores, since the start.
  std::uint64_t loaded_bytes = 0;
  std::uint64_t stores = 0, loads = 0, failures = 0;  // Completed transfers; failed ones.
  std::int64_t stall_ns = 0;                          // Total time of threads in wait().
};

struct SpillBandwidth {  // Bytes per second of recent transfers, including checksums and staging.
  double store = 0, load = 0;
};

class SpillFile {
 public:
  // Throws InvalidArgument without a directory, for a path that is not a directory, for a directory in memory (tmpfs,
  // ramfs) and for a staging block of the wrong size or alignment; NotFound when the directory does not exist; Error
  // (with the system's reason) when it cannot be written to.
  explicit SpillFile(const SpillOptions& options);

  // Reserves disk space for `bytes`, from freed slots or from the file system. Throws OutOfMemory, having changed
  // nothing, when that would pass the limit, the disk's or the user's quota or the process's file size limit; the
  // message names the directory, the bytes requested and those free, and its requested(), limit() and in_use() describe
  // the file. InvalidArgument for 0 bytes, Unsupported where the file system cannot reserve, Error when it fails.
  [[nodiscard]] SpillSlot reserve(std::size_t bytes);

  // When there were no transfers yet, measures with up to 64 MiB for less than a second; later calls return what
  // transfers really took. Without a staging block it uses 1 MiB of memory meanwhile. Throws as reserve() and wait().
  SpillBandwidth bandwidth();

  SpillStats stats() const;
  bool operator==(const SpillFile& other) const noexcept { return state_ == other.state_; }  // The same file.
  const std::filesystem::path& directory() const noexcept;
  std::size_t limit() const noexcept;
  bool is_direct() const noexcept;                 // Whether I/O bypasses the page cache.
  std::size_t address_alignment() const noexcept;  // Memory aligned to it needs no staging.
  static constexpr std::size_t staging_bytes() noexcept { return std::size_t{1} << 20; }

 private:
  struct State;
  friend class SpillSlot;
  std::shared_ptr<State> state_;
};

// Space in a SpillFile for one range of bytes, and the current transfer of it, if any. The destructor waits for a
// transfer that has begun and frees the space; a slot is empty after being moved from.
class SpillSlot {
 public:
  SpillSlot() noexcept;
  ~SpillSlot();
  SpillSlot(SpillSlot&& other) noexcept;
  SpillSlot& operator=(SpillSlot&& other) noexcept;

  explicit operator bool() const noexcept { return entry_ != nullptr; }
  std::size_t bytes() const noexcept;         // As reserved.
  std::size_t stored_bytes() const noexcept;  // What load() gives; 0 until wait() has found a store complete.
  std::uint64_t offset() const noexcept;      // In the file; for reports.
  bool is_of(const SpillFile& file) const noexcept;

  // Begin a transfer, after waiting for the previous one (and throwing what went wrong with it). Both throw
  // InvalidArgument for memory that needs staging when there is none and for a size that does not fit: store() takes up
  // to bytes(), load() exactly stored_bytes(). FailedPrecondition in a forked child, for a slot moved from and for a
  // load when nothing is stored. Error when the thread cannot be started. Then nothing has begun, and the slot is
  // unchanged.
  void store(std::span<const std::byte> source);  // What was stored before is lost from here on.
  void load(std::span<std::byte> target);         // `target` may be written from here on.

  // Returns when no transfer is running. Throws, once, what went wrong: OutOfMemory when the disk is full after all,
  // Error (with offset and the system's reason) when it fails, Corruption (with the offset) when the checksum of the
  // loaded bytes differs from that of the stored ones.
  void wait();
  bool is_busy() const noexcept;  // Whether wait() would block now.
  // Cancels: nothing runs afterwards, errors are dropped, and what was to be stored is not.
  void give_up() noexcept;

 private:
  struct Entry;
  friend class SpillFile;
  explicit SpillSlot(std::unique_ptr<Entry> entry) noexcept;
  void prepare(const char* verb, const void* memory, std::size_t bytes);
  void begin(bool is_store, std::byte* memory, std::size_t bytes);
  void submit();
  void release() noexcept;

  std::unique_ptr<Entry> entry_;
};

}  // namespace plimsoll::internal
