// The log of an arena's first requests, used to compute the limit that a refused program would need.
#include <new>

#include "plimsoll/memory/internal/arena_core.h"
#include "plimsoll/memory/internal/dry_run.h"

namespace plimsoll::internal {

// The log does not cover charged overhead, pages touched beforehand, or addresses that the system refused.
void ArenaCore::start_log() {
  if (options.charge_overhead || options.pretouch || !heap.has_all_addresses()) return;
  log_ = std::make_unique<RequestLog>();
  heap.log_bytes.store(log_->bytes(), std::memory_order_relaxed);
  quick_number_.store(kNoNumber, std::memory_order_relaxed);
  logging_.store(true, std::memory_order_relaxed);
}

// It ends with the first request of another thread, because threads interleave differently in every run.
template <class F>
void ArenaCore::add_to_log(F&& add) noexcept {
  if (!logging_.load(std::memory_order_relaxed)) [[likely]]
    return;
  const std::lock_guard lock(log_mutex);
  if (!log_) return;
  const ThreadMemory* const self = &ThreadMemory::current();
  if (!log_thread_) log_thread_ = self;
  bool kept = false;
  try {
    kept = log_thread_ == self && !mode.has(ArenaMode::kDeferred) && add(*log_);
  } catch (const std::bad_alloc&) {
  }
  if (!kept) return end_log_locked();
  heap.log_bytes.store(log_->bytes(), std::memory_order_relaxed);
}

void ArenaCore::log(LoggedRequest::Kind kind) noexcept {
  add_to_log([&](RequestLog& log) { return log.add(kind); });
}

void ArenaCore::log_take(const BlockRequest& request, const Chunk* chunk) noexcept {
  add_to_log([&](RequestLog& log) { return log.add_take(request.size, request.alignment, chunk->label.id); });
}

void ArenaCore::log_give(const Chunk* chunk) noexcept {
  add_to_log([&](RequestLog& log) { return log.add_give(chunk->label.id); });
}

void ArenaCore::end_log() noexcept {
  if (!logging_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(log_mutex);
  end_log_locked();
}

void ArenaCore::end_log_locked() noexcept {
  log_.reset();
  heap.log_bytes.store(0, std::memory_order_relaxed);
  logging_.store(false, std::memory_order_relaxed);
  quick_number_.store(number_, std::memory_order_relaxed);
}

// For a refused request: found by replaying the program's requests where they are known, else estimated.
SufficientLimit ArenaCore::find_sufficient_limit(const BlockRequest& request) {
  SufficientLimit found = heap.sufficient_limit(request);
  const std::lock_guard lock(log_mutex);
  if (!log_ || (log_thread_ && log_thread_ != &ThreadMemory::current())) return found;
  if (found.pages_now > 0)
    if (const std::size_t pages = pages_when_run_again(*this, *log_, request, found.pages_now, dry_words_); pages > 0)
      found.bytes = pages << heap.page_shift();
  if (request.size > kMostLimit || !log_->add_refused(request.size, request.alignment) ||
      !log_->add(LoggedRequest::kEmptyCaches))
    end_log_locked();
  return found;
}

}  // namespace plimsoll::internal
