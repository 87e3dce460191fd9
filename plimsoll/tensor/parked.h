// Parked storages: their bytes are in a slot of a spill file, and not in memory, until their next use.
//
//   Parking::park(*storage, file);     // its bytes are in the file now, its memory is free
//   storage->resident();               // they come back at the next use, as for a lazy storage
//
// A parked storage is a lazy one that is filled from its slot. Programs that keep variables in a file load from the
// slot into their own memory, store what they changed in another slot, and exchange the two when everything has
// succeeded: a failure before that leaves the old bytes unchanged.
// take_elsewhere() makes a lazy storage whose bytes somebody else has, such as other processes.
// Thread safety: park() and exchange() require that the caller keeps others from using the storage (a variable's lock,
// no other reference); using the slot requires its mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

struct ParkedBytes {
  ParkedBytes() = default;
  ~ParkedBytes() { count(0); }
  ParkedBytes(const ParkedBytes&) = delete;
  ParkedBytes& operator=(const ParkedBytes&) = delete;
  void count(std::size_t bytes) noexcept;  // Counts bytes that are in the file and not in memory.

  std::mutex mutex;
  SpillSlot slot;
  std::uint32_t version = 0;  // The storage's version when the slot had its bytes.
  std::size_t counted = 0;
};

class Parking {
 public:
  static constexpr std::size_t kLeastBytes = kSpillAlignment;  // Smaller ones stay in memory.

  // Only holders of `references` references use the bytes, and they are neither pinned nor the program's own.
  static bool is_own(const Storage& storage, std::uint32_t references) noexcept;
  // Frees the memory of a resident storage on the host for which is_own() holds, after storing its bytes unless the
  // file already has them. Throws what SpillFile and SpillSlot throw; the storage is then resident as before.
  static void park(Storage& storage, SpillFile& file);
  // Where the bytes of a storage that is not resident are; nullptr when it has not been filled yet.
  static ParkedBytes* bytes_of(const Storage& storage) noexcept;
  // Fills a lazy storage that has no such bytes.
  static void fill(const Storage& storage, void* to) noexcept;
  // From now on the bytes of a non-resident storage are those of `with`, which receives the old ones. A resident
  // storage forgets where its bytes were; `with` is then empty.
  static void exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept;
  // Copies the bytes of a parked storage, which stays parked; false when it is not parked. Throws Error and Corruption.
  static bool read(const Storage& storage, void* to);
  // Makes it resident. Throws OutOfMemory, Error and Corruption; it then stays parked.
  static void bring_back(Storage& storage);
  static std::size_t parked_bytes() noexcept;  // Of all storages, on all threads.
  // A storage whose bytes `load` writes, at its first use. What that throws, the use throws; the storage stays lazy.
  static StorageRef take_elsewhere(Device& device, std::size_t bytes, const BlockLabel& label,
                                   std::function<void(void*)> load);
  static bool is_elsewhere(const Storage& storage) noexcept;  // Made so, and not used yet.
};

}  // namespace plimsoll::internal
