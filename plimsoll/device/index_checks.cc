#include "plimsoll/device/index_checks.h"

#include <algorithm>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostDeferred = 512, kMostUntold = 64;

}  // namespace

IndexChecks::~IndexChecks() {
  if (word_ != KernelQueue::kNoWord) backend_.kernels()->give_word(word_);
}

bool IndexChecks::defer(const IndexRule& rule, const ConstTensorView& indices) {
  KernelQueue* const queue = backend_.kernels();
  if (!queue) return false;
  if (indices.size() == 0) return true;
  std::unique_lock lock(mutex_);
  if (deferred_.size() == kMostDeferred) {
    lock.unlock();
    settle();
    lock.lock();
  }
  if (word_ == KernelQueue::kNoWord) word_ = queue->take_word();
  if (word_ == KernelQueue::kNoWord) return false;
  deferred_.push_back({rule, indices.shape(), std::this_thread::get_id()});
  if (!queue->check_indices(word_, static_cast<std::uint32_t>(deferred_.size()), indices, rule.size)) {
    deferred_.pop_back();
    return false;
  }
  is_pending_.store(true, std::memory_order_release);
  return true;
}

void IndexChecks::settle() {
  const std::lock_guard lock(mutex_);
  const std::thread::id here = std::this_thread::get_id();
  if (!deferred_.empty()) {
    const RefusedIndex found = backend_.kernels()->read_word(word_);
    if (found.check != 0 && found.check <= deferred_.size()) {
      const Deferred& refused = deferred_[found.check - 1];
      if (untold_.size() == kMostUntold) untold_.erase(untold_.begin());
      untold_.push_back({refused.rule.text(refused.rule, refused.indices, found.position, found.index), refused.owner});
    }
    deferred_.clear();
    is_pending_.store(!untold_.empty(), std::memory_order_release);
    if (found.check != 0 && !untold_.empty() && untold_.back().owner != here)
      throw InvalidArgument(untold_.back().text);
  }
  const auto mine = std::find_if(untold_.begin(), untold_.end(), [&](const Refused& one) { return one.owner == here; });
  if (mine == untold_.end()) return;
  const std::string text = std::move(mine->text);
  untold_.erase(mine);
  is_pending_.store(!untold_.empty(), std::memory_order_release);
  throw InvalidArgument(text);
}

}  // namespace plimsoll::internal
