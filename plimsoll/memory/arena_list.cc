#include "plimsoll/memory/arena_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/memory/alerts.h"
#include "plimsoll/memory/internal/arena_core.h"

namespace plimsoll::internal {

ArenaList& ArenaList::instance() {
  static auto* list = new ArenaList;
  return *list;
}

ArenaList::ArenaList() { set_thread_hooks({&ArenaList::thread_ends, &ArenaList::before_fork, &ArenaList::after_fork}); }

void ArenaList::add(Arena* arena) {
  const std::lock_guard lock(mutex_);
  const auto free = std::find(arenas_.begin(), arenas_.end(), nullptr);
  if (free == arenas_.end())
    throw Unsupported(
        fmt::format("arena \"{}\": {} arenas exist already; destroy one first", arena->name(), arenas_.size()));
  arena->core_->set_number(static_cast<std::size_t>(free - arenas_.begin()));  // Before others can find it.
  *free = arena;
}

void ArenaList::remove(Arena* arena, std::size_t number) {
  const std::lock_guard lock(mutex_);
  PLIMSOLL_CHECK(arenas_[number] == arena);
  arenas_[number] = nullptr;
  const std::lock_guard centers(MeterCenter::mutex());
  const StopThreads stopped;
  for (ThreadMemory* thread : stopped) {
    delete thread->caches[number];
    thread->caches[number] = nullptr;
  }
}

void ArenaList::for_each(const std::function<void(Arena&)>& f) {
  const std::lock_guard lock(mutex_);
  for (Arena* arena : arenas_)
    if (arena) f(*arena);
}

void ArenaList::thread_ends(ThreadMemory& thread) {
  instance().for_each([&](Arena& arena) { arena.core_->detach(thread); });
}

void ArenaList::before_fork() {
  instance().mutex_.lock();
  for (Arena* arena : instance().arenas_)
    if (arena) {
      arena->core_->log_mutex.lock();
      arena->core_->heap.mutex.lock();
    }
  AlertList::instance().mutex_.lock();
}

void ArenaList::after_fork(bool child) {
  AlertList::instance().mutex_.unlock();
  for (Arena* arena : instance().arenas_) {
    if (!arena) continue;
    if (child) arena->core_->heap.heap().range().after_fork();
    arena->core_->heap.mutex.unlock();
    arena->core_->log_mutex.unlock();
  }
  instance().mutex_.unlock();
}

}  // namespace plimsoll::internal
