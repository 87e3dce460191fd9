#include "plimsoll/tensor/scope_list.h"

#include <algorithm>
#include <new>

namespace plimsoll {

ScopeList::~ScopeList() { end(nullptr); }

void ScopeList::sweep() noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    TensorRecord* record = entries_[i];
    if (record->is_alive() && record->has(TensorRecord::kLive)) {
      entries_[kept++] = record;
    } else {
      record->owner.store(nullptr, std::memory_order_relaxed);
      record->release_weak();
    }
  }
  size_ = kept;
}

void ScopeList::sweep_or_grow() {
  sweep();
  if (size_ <= capacity_ / 2) return;
  auto larger = std::make_unique<TensorRecord*[]>(capacity_ * 2);
  std::copy_n(entries_, size_, larger.get());
  far_ = std::move(larger);
  entries_ = far_.get();
  capacity_ *= 2;
}

void ScopeList::end(ScopeList* heir) noexcept {
  for (std::size_t i = 0; i < size_; ++i) {
    TensorRecord* record = entries_[i];
    if (!record->is_alive()) {
      record->release_weak();
      continue;
    }
    const bool returned = record->has(TensorRecord::kReturned);
    record->clear(TensorRecord::kReturned);
    if (returned && heir && !record->has(TensorRecord::kKept)) {
      try {
        heir->make_room();
        heir->entries_[heir->size_++] = record;  // The weak reference moves with it.
        record->owner.store(heir, std::memory_order_relaxed);
        continue;
      } catch (const std::bad_alloc&) {  // It stays with its handles only.
      }
    }
    record->owner.store(nullptr, std::memory_order_relaxed);
    if (!returned && !record->has(TensorRecord::kKept)) record->dispose();
    record->release_weak();
  }
  size_ = 0;
}

void ScopeList::end_with_all(ScopeList* heir) noexcept {
  for (std::size_t i = 0; i < size_; ++i) entries_[i]->set(TensorRecord::kReturned);
  end(heir);
}

}  // namespace plimsoll
