// ArenaList: every arena, by number, so that ending threads, fork() and process-wide reports can reach them.
#pragma once

#include <array>
#include <functional>
#include <mutex>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
class Arena;
}  // namespace plimsoll

namespace plimsoll::internal {

class ArenaList {
 public:
  static ArenaList& instance();

  void add(Arena* arena);  // Gives it its number. Throws Unsupported beyond 254.
  void remove(Arena* arena, std::size_t number);

  // Calls f(arena) for each, in the order of their numbers. No arena is created or destroyed meanwhile.
  void for_each(const std::function<void(Arena&)>& f);

 private:
  ArenaList();
  static void thread_ends(ThreadMemory& thread);
  static void before_fork();
  static void after_fork(bool child);

  std::mutex mutex_;
  std::array<Arena*, ThreadMemory::kMaxArenas - 2> arenas_{};  // ArenaCore reserves two entries.
};

}  // namespace plimsoll::internal
