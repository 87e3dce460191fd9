// The process's one thread pool. It is made at first use, never destroyed, and replaced in the child of a fork: there
// the workers do not exist, and one of them may have held the old pool's mutex.
#include <pthread.h>

#include <atomic>

#include "plimsoll/base/processors.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constinit std::atomic<ThreadPool*> current{nullptr};
constinit std::atomic<ThreadPool*> abandoned{nullptr};  // Kept reachable: not a leak, just never used again.
constinit std::atomic<int> chosen_threads{0};           // Survives a fork; 0: not chosen.

void abandon_pool_in_child() {
  ThreadPool* const old = current.exchange(nullptr);
  if (!old) return;
  chosen_threads = old->num_threads();
  abandoned = old;
}

ThreadPool& make_pool() {
  static constinit std::atomic<bool> watching{false};
  if (!watching.exchange(true)) pthread_atfork(nullptr, nullptr, abandon_pool_in_child);
  const int threads = chosen_threads > 0 ? chosen_threads.load() : usable_processors();
  auto* const made = new ThreadPool(threads);
  ThreadPool* expected = nullptr;
  if (current.compare_exchange_strong(expected, made)) return *made;
  delete made;  // Another thread was quicker.
  return *expected;
}

ThreadPool& process_pool() {
  ThreadPool* const pool = current.load(std::memory_order_acquire);
  return pool ? *pool : make_pool();
}

}  // namespace

void run_parallel_for(std::int64_t n, std::int64_t grain, ThreadPool::Body body) {
  process_pool().parallel_for(n, grain, body);
}
int num_threads() { return process_pool().num_threads(); }
void set_num_threads(int num_threads) { process_pool().set_num_threads(num_threads); }

}  // namespace plimsoll::internal
