// ScopeList: the tensors that a tidy scope is responsible for, in the order they were made.
//
// It refers to them weakly: a tensor whose last handle is gone is freed at once, and its entry is removed when the list
// is about to grow, so a long loop inside one scope needs no more than its live tensors. Belongs to one thread or
// coroutine at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll {

class PLIMSOLL_API ScopeList {
 public:
  ScopeList() noexcept = default;
  ~ScopeList();  // Releases the tensors it tracks that were not kept or returned.
  ScopeList(const ScopeList&) = delete;
  ScopeList& operator=(const ScopeList&) = delete;

  // Makes sure that the next track() cannot fail.
  void make_room() {
    if (size_ == capacity_) [[unlikely]]
      sweep_or_grow();
  }
  // Tracks a new tensor, which no other list tracks. Requires room.
  void track(TensorRecord* record) noexcept {
    record->references.fetch_add(TensorRecord::kWeak, std::memory_order_relaxed);
    record->owner.store(this, std::memory_order_relaxed);
    entries_[size_++] = record;
  }

  ScopeList* outer = nullptr;  // The scope around this one.

  // Passes a tensor of this list to `heir` (nobody when it is nullptr) at the end. Does nothing for tensors of other
  // lists.
  void hand_on(TensorRecord& record) noexcept {
    if (record.owner.load(std::memory_order_relaxed) == this) record.set(TensorRecord::kReturned);
  }
  // Ends the scope: passes the handed-on tensors to `heir`, leaves the kept ones, disposes of the rest.
  void end(ScopeList* heir) noexcept;
  // The same, with everything handed on.
  void end_with_all(ScopeList* heir) noexcept;

 private:
  static constexpr std::size_t kNear = 16;
  void sweep_or_grow();
  void sweep() noexcept;

  TensorRecord* near_[kNear];
  TensorRecord** entries_ = near_;
  std::size_t size_ = 0;
  std::size_t capacity_ = kNear;
  std::unique_ptr<TensorRecord*[]> far_;
};

}  // namespace plimsoll
