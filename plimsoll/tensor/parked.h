// Parked storages: bytes that are in a slot of a spill file, and not in memory, until their next use.
//
//   Parking::park(*storage, file);     // its bytes are in the file now, its memory is free
//   storage->resident();               // and come back at the next use, as a lazy storage's do
//
// A parked storage is a lazy one that is filled from its slot. Programs that keep variables in a file load from the
// slot into their own memory, store what they changed in another slot, and exchange the two when everything has
// happened: whatever fails before that leaves the old bytes as they were.
// Thread safety: park() and exchange() by who keeps others from the storage (a variable's lock, no other reference);
// the slot by who holds its mutex.
#pragma once

#include <cstddef>
#include <cstdint>
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
  void count(std::size_t bytes) noexcept;  // So many are in the file and not in memory.

  std::mutex mutex;
  SpillSlot slot;
  std::uint32_t version = 0;  // Of the storage, when the slot had its bytes.
  std::size_t counted = 0;
};

class Parking {
 public:
  static constexpr std::size_t kLeastBytes = kSpillAlignment;  // Smaller ones stay in memory.

  // Nobody but holders of `references` references uses the bytes, and they are neither pinned nor the program's own.
  static bool is_own(const Storage& storage, std::uint32_t references) noexcept;
  // Frees the memory of a resident one that is_own() and on the host, having stored its bytes, unless the file has them
  // already. Throws what SpillFile and SpillSlot throw; then it is resident as before.
  static void park(Storage& storage, SpillFile& file);
  // Where the bytes of one that is not resident are; nullptr when it has not been filled yet.
  static ParkedBytes* bytes_of(const Storage& storage) noexcept;
  // What a lazy one without such bytes is filled with.
  static void fill(const Storage& storage, void* to) noexcept;
  // The bytes of one that is not resident are those of `with` from now on; gives back what it had before. A resident
  // one forgets where its bytes were, with nothing in `with`.
  static void exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept;
  // Copies the bytes of a parked one, which stays parked; false when it is not. Throws Error and Corruption.
  static bool read(const Storage& storage, void* to);
  // Makes it resident. Throws OutOfMemory, Error and Corruption; then it is parked as before.
  static void bring_back(Storage& storage);
  static std::size_t parked_bytes() noexcept;  // Of all storages, on all threads.
};

}  // namespace plimsoll::internal
