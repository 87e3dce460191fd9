// TensorRecord: the data of a tensor: where its bytes are, its shape and dtype, and what the ledger shows.
//
// All copies of a Tensor handle refer to one record. Records are kept in slabs (slabs.h), so that a walk over the
// ledger can visit any of them; a thread makes and drops them inside its gate (thread_memory.h).
// Strong references (handles) and weak ones (scopes) are counted in one word: the tensor ends with the last strong
// reference, the record with the last of both. All strong references together hold one weak one.
// A record is one cache line; with its storage a tensor takes 120 bytes. Shapes are kept once for all tensors that have
// them (shape_table.h), and so is where tensors were made (provenance.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/memory/label.h"
#include "plimsoll/tensor/provenance.h"
#include "plimsoll/tensor/shape_table.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll {

class ScopeList;

struct alignas(64) TensorRecord {
  static constexpr std::uint64_t kStrong = 1;
  static constexpr std::uint64_t kWeak = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kStrongMask = UINT32_MAX;

  enum Flag : std::uint8_t {
    kLive = 1,        // Counted by memory(). Not set: spare, or disposed.
    kKept = 2,        // No scope releases it.
    kReturned = 4,    // Its scope passes it on when it ends.
    kView = 8,        // Made on the bytes of another tensor.
    kVariable = 16,   // Belongs to a Variable.
    kTrainable = 32,  // Tapes watch it by themselves.
    kReference = 64,  // Represents its variable: a graph that uses it reads the variable, not this value.
    kNamed = 128      // `details` is its own, a NamedShape.
  };

  std::atomic<std::uint64_t> references{0};
  std::atomic<Storage*> storage{nullptr};  // One reference; nullptr when disposed.
  std::size_t offset = 0;                  // Offset of the first element, in bytes.
  union {
    std::uint64_t id = 0;  // Id of the value, for gradients: snapshots of one variable share it.
    TensorRecord* next;    // Links spare ones.
  };
  std::atomic<ScopeList*> owner{nullptr};  // Written by the scope's thread at any time; for comparing only.
  const SharedShape* details = nullptr;    // nullptr only before its first use.
  std::uint32_t provenance = 0;
  std::uint32_t step = 0;
  std::uint32_t era = 0;  // newest_era when it was made.
  DType dtype = f32;
  Category category = Category::kOther;
  std::atomic<std::uint8_t> flags{0};

  // Incremented by each LeakCheck, while all threads are stopped at their gates.
  static inline std::atomic<std::uint32_t> newest_era{0};

  const Shape& shape() const noexcept { return details->shape; }  // Valid as long as the record.
  const char* name() const noexcept { return has(kNamed) ? static_cast<const NamedShape*>(details)->name : nullptr; }
  const char* op() const noexcept { return Provenance::of(provenance).op; }
  const char* scope() const noexcept { return Provenance::of(provenance).scope; }
  std::uint32_t site() const noexcept { return Provenance::of(provenance).site; }

  bool has(Flag flag) const noexcept { return (flags.load(std::memory_order_relaxed) & flag) != 0; }
  void set(Flag flag) noexcept { flags.fetch_or(flag, std::memory_order_relaxed); }
  void clear(Flag flag) noexcept { flags.fetch_and(static_cast<std::uint8_t>(~flag), std::memory_order_relaxed); }

  void retain() noexcept { references.fetch_add(kStrong, std::memory_order_relaxed); }
  void release() noexcept {
    // The only reference of any kind: nobody else can take one.
    if (references.load(std::memory_order_acquire) == kStrong + kWeak) return drop(kWeak);
    const std::uint64_t before = references.fetch_sub(kStrong, std::memory_order_acq_rel);
    if ((before & kStrongMask) == 1) drop(before);
  }
  bool is_alive() const noexcept { return (references.load(std::memory_order_acquire) & kStrongMask) != 0; }
  PLIMSOLL_API void release_weak() noexcept;

  // Frees the bytes and refuses use from now on; the record stays for the handles that refer to it.
  PLIMSOLL_API void dispose() noexcept;

 private:
  PLIMSOLL_API void drop(std::uint64_t before) noexcept;  // The last strong reference is gone.
  void drop_watched() noexcept;
};
static_assert(sizeof(TensorRecord) == 64);

}  // namespace plimsoll
