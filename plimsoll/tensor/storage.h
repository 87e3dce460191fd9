// Storage: the place of a tensor's bytes, which may or may not hold them now.
//
//   StorageRef storage = Storage::take(device, 4096, label);   // resident
//   void* bytes = storage->resident();                         // allocates them first when it was lazy
//
// States: lazy -> resident -> gone. A lazy storage knows its size and what to fill it with, and allocates memory at its
// first use. memory() counts it once it is resident. Tensors, tapes and variables share it by counted references; the
// last one frees the bytes.
// Under an evicting budget, results of operations are droppable -> dropped -> droppable instead of resident: their
// bytes may be dropped at any time except while someone holds a BytesLock, and are recomputed when they are read
// (evict/recipe.h).
// Thread safety: references may be taken and dropped on any thread; users must order access to the bytes.
// Cost: about 20 ns on top of the arena's to allocate and free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {
namespace internal {
class Device;
class TensorMaker;
class TensorThread;
class LedgerWalk;
}  // namespace internal

struct Chunk;
class Storage;
struct SymbolicValue;
namespace evict {
struct Value;
class StorageAccess;
}  // namespace evict

// A counted reference to a storage.
class StorageRef {
 public:
  StorageRef() noexcept = default;
  StorageRef(const StorageRef& other) noexcept;
  StorageRef(StorageRef&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StorageRef& operator=(StorageRef other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StorageRef();

  static StorageRef adopt(Storage* storage) noexcept {  // Takes over a reference that is already counted.
    StorageRef result;
    result.storage_ = storage;
    return result;
  }
  static StorageRef share(Storage* storage) noexcept;  // Counts one more.
  Storage* release() noexcept { return std::exchange(storage_, nullptr); }

  Storage* get() const noexcept { return storage_; }
  Storage* operator->() const noexcept { return storage_; }
  Storage& operator*() const noexcept { return *storage_; }
  explicit operator bool() const noexcept { return storage_ != nullptr; }

 private:
  Storage* storage_ = nullptr;
};

class PLIMSOLL_API Storage {
 public:
  enum class State : std::uint8_t { kSpare, kLazy, kResident, kSymbolic, kDroppable, kDropped };

  // What a lazy storage is filled with: an element's bytes, repeated.
  struct Fill {
    std::uint64_t pattern = 0;
    std::uint8_t element_bytes = 1;
  };

  // `bytes` of the device's memory, not cleared; 0 bytes allocate none. Throws OutOfMemory; then nothing has changed.
  static StorageRef take(Device& device, std::size_t bytes, const BlockLabel& label);
  // The same, but allocates at its first use.
  static StorageRef take_lazily(Device& device, std::size_t bytes, const BlockLabel& label, Fill fill);
  // Memory of the caller, valid until `deleter` is called with it. Counted as a buffer of 0 bytes.
  static StorageRef wrap(Device& device, void* memory, std::size_t bytes, std::function<void(void*)> deleter);
  // Never has bytes: stands for what a graph will compute (tracer.h). Not counted.
  static StorageRef symbolic(Device& device, SymbolicValue value);

  // The first byte; allocates the memory of a lazy storage (OutOfMemory: it stays lazy), recomputes a dropped one
  // (OutOfMemory: it stays dropped). The bytes are not dropped from then on: to read them only once, take a BytesLock.
  // Throws FailedPrecondition for a symbolic one.
  void* resident() {
    if (!is_fixed()) [[unlikely]]
      make_resident();
    return base_;
  }
  void* base() const noexcept { return base_; }  // Requires a resident storage.
  bool is_resident() const noexcept {            // Whether it has its bytes now.
    const State state = state_.load(std::memory_order_acquire);
    return state == State::kResident || state == State::kDroppable;
  }
  // It has its bytes now and until it ends.
  bool is_fixed() const noexcept { return state_.load(std::memory_order_acquire) == State::kResident; }
  bool is_dropped() const noexcept { return state_.load(std::memory_order_acquire) == State::kDropped; }
  void keep_resident() {  // As resident(), except that a lazy one stays lazy.
    if (!is_fixed() && state_.load(std::memory_order_acquire) != State::kLazy) make_resident();
  }

  bool is_symbolic() const noexcept { return state_.load(std::memory_order_acquire) == State::kSymbolic; }
  const SymbolicValue& symbolic() const noexcept;  // Requires a symbolic one.

  Device& device() const noexcept { return *device_; }
  bool is_on_host() const noexcept;  // Whether this process can read the bytes where they are.
  std::size_t bytes() const noexcept { return bytes_; }
  const Chunk* chunk() const noexcept { return chunk_; }  // nullptr when lazy, empty, dropped or wrapped.
  bool is_wrapped() const noexcept {                      // Lazy ones have an external_ too.
    return base_ && !chunk_ && !is_watched() && external_;
  }
  std::uint32_t references() const noexcept { return references_.load(std::memory_order_acquire) & ~kWatched; }
  // One reference, and no recipe reads or makes its contents.
  bool is_sole() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

  // How often it was written in place. Call note_write() before the bytes change: dropped results that were computed
  // from them are recomputed first, which may throw OutOfMemory; then nothing has changed.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void note_write() {
    if (is_watched()) [[unlikely]]
      end_recipes();
    version_.fetch_add(1, std::memory_order_relaxed);
  }

  // The program may write the bytes at any time from now on, through a view that it keeps: they cannot serve as an
  // operand to recompute a result from. Wrapped memory is like this from the start.
  void note_writer_outside() {
    note_write();
    written_outside_.store(true, std::memory_order_relaxed);
  }
  bool is_written_outside() const noexcept { return written_outside_.load(std::memory_order_relaxed); }

  // Pinned bytes have a reader outside the library: they are neither moved nor written in place.
  void pin() noexcept { pins_.fetch_add(1, std::memory_order_relaxed); }
  void unpin() noexcept { pins_.fetch_sub(1, std::memory_order_release); }
  bool is_pinned() const noexcept { return pins_.load(std::memory_order_acquire) != 0; }

  // Changes the purpose and name that the ledger shows.
  void relabel(Category category, const char* name) noexcept;

 private:
  friend class StorageRef;
  friend struct TensorRecord;
  friend class internal::TensorMaker;
  friend class internal::TensorThread;
  friend class internal::LedgerWalk;
  friend class evict::StorageAccess;
  friend Storage*& next_of(Storage& storage) noexcept;
  struct External;

  // What remains to be released after a storage has ended.
  struct Remains {
    Device* device = nullptr;
    Chunk* chunk = nullptr;
    External* external = nullptr;
    void give_back() noexcept;  // Call outside the gate.
  };

  // In references_: recipes read or make its contents; value_ then replaces external_.
  static constexpr std::uint32_t kWatched = std::uint32_t{1} << 31;
  bool is_watched() const noexcept { return (references_.load(std::memory_order_acquire) & kWatched) != 0; }

  static Storage* make(Device& device, std::size_t bytes, State state) noexcept(false);
  void make_resident();
  void end_recipes();
  void drop() noexcept;  // The last reference is gone.

  // Inside the gate: a spare one begins with these bytes; one without references ends.
  void begin(TensorThread& counts, Device& device, Chunk* chunk, std::size_t bytes) noexcept;
  Remains end(TensorThread& counts) noexcept;

  void* base_;
  Chunk* chunk_;
  Device* device_;
  std::size_t bytes_;
  union {
    External* external_;  // Wrapped memory, or the label and fill of a lazy storage.
    Storage* next_;       // Links spare ones.
    evict::Value* value_;
  };
  std::atomic<std::uint32_t> references_;
  std::atomic<std::uint32_t> version_;
  std::uint32_t walk_ = 0;  // Mark of a walk over the ledger.
  std::atomic<std::uint16_t> pins_;
  std::atomic<State> state_;
  std::atomic<bool> written_outside_;
};
static_assert(sizeof(Storage) == 56);

inline StorageRef::StorageRef(const StorageRef& other) noexcept : storage_(other.storage_) {
  if (storage_) storage_->references_.fetch_add(1, std::memory_order_relaxed);
}
inline StorageRef StorageRef::share(Storage* storage) noexcept {
  storage->references_.fetch_add(1, std::memory_order_relaxed);
  return adopt(storage);
}
inline StorageRef::~StorageRef() {
  if (!storage_) return;
  // A sole owner needs no ordering: nobody can take a reference without having one.
  if (storage_->references_.load(std::memory_order_acquire) == 1 ||
      (storage_->references_.fetch_sub(1, std::memory_order_acq_rel) & ~Storage::kWatched) == 1)
    storage_->drop();
}

// Keeps the bytes of a storage in place while it lives; first recomputes them when they were dropped, and allocates the
// memory of a lazy one. The caller keeps the storage alive.
//   BytesLock lock;
//   lock.hold(storage);
//   storage.base() ...
// Throws as resident(). Cost: a load and a branch unless the storage is droppable.
class PLIMSOLL_API BytesLock {
 public:
  BytesLock() noexcept = default;
  explicit BytesLock(Storage& storage) { hold(storage); }
  BytesLock(const BytesLock& other) noexcept : held_(other.held_) {
    if (held_) hold_again();
  }
  BytesLock& operator=(const BytesLock&) = delete;
  ~BytesLock() {
    if (held_) [[unlikely]]
      release();
  }
  void hold(Storage& storage) {  // Call once.
    if (!storage.is_fixed()) [[unlikely]]
      hold_slowly(storage);
  }

 private:
  void hold_slowly(Storage& storage);
  void hold_again() noexcept;
  void release() noexcept;
  evict::Value* held_ = nullptr;
};

// The same, where this process can read them: for another device, a copy in host memory, charged like any other.
//   HostBytes here;
//   const void* bytes = here.hold(storage, offset, size);
// Throws as resident(), OutOfMemory when the copy does not fit and Error when the device fails.
class PLIMSOLL_API HostBytes {
 public:
  const std::byte* hold(Storage& storage, std::size_t offset, std::size_t bytes) {  // Call once.
    lock_.hold(storage);
    if (!storage.is_on_host()) [[unlikely]]
      return stage(storage, offset, bytes);
    return static_cast<const std::byte*>(storage.base()) + offset;
  }

 private:
  const std::byte* stage(Storage& storage, std::size_t offset, std::size_t bytes);
  BytesLock lock_;
  StorageRef staged_;
};

}  // namespace plimsoll
