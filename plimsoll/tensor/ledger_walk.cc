#include "plimsoll/tensor/ledger_walk.h"

#include <mutex>
#include <utility>

#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/evict/recipe.h"
#include "plimsoll/tensor/slabs.h"

namespace plimsoll::internal {

bool LedgerWalk::claim(Storage& storage, std::uint32_t walk) noexcept {
  return std::exchange(storage.walk_, walk) != walk;
}

std::size_t LedgerWalk::bytes_of(const Storage& storage) noexcept {
  return storage.is_resident() && storage.chunk_ ? storage.bytes_ : 0;
}

const BlockLabel* LedgerWalk::label_of(const Storage& storage) noexcept {
  if (storage.is_dropped()) return &storage.value_->label;
  return storage.chunk_ ? &storage.chunk_->label : nullptr;
}

std::size_t LedgerWalk::num_pins(const Storage& storage) noexcept {
  return storage.pins_.load(std::memory_order_relaxed);
}

void LedgerWalk::run(Visit f) {
  static std::uint32_t walks = 0;  // Guarded by the slabs' mutex.
  Slabs& slabs = Slabs::instance();
  const std::lock_guard lock(slabs.mutex);
  const StopThreads stopped;
  const std::uint32_t walk = ++walks;
  bool any_views = false;
  // Views come second, so that they find the bytes claimed where their owner is alive.
  for (const bool views : {false, true}) {
    if (views && !any_views) continue;
    slabs.records.for_each([&](const TensorRecord& record) {
      if (!record.has(TensorRecord::kLive)) return;
      if (record.has(TensorRecord::kView) != views) {
        any_views = true;
        return;
      }
      Storage* const storage = record.storage.load(std::memory_order_acquire);
      f({&record, storage, claim(*storage, walk) ? bytes_of(*storage) : 0});
    });
  }
  slabs.storages.for_each([&](Storage& storage) {
    if ((storage.is_resident() || storage.is_dropped()) && claim(storage, walk))
      f({nullptr, &storage, bytes_of(storage)});
  });
}

}  // namespace plimsoll::internal
