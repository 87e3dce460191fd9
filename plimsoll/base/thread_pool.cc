#include "plimsoll/base/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/internal/thread_placement.h"

namespace plimsoll::internal {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kSpins = 8000;  // About 0.1 ms: longer than the gap between two ops, too short to be noticed.

constexpr int kMaxLanes = 8;
constexpr int kPatience = 8;  // How many loops in a row may lack the help they called for before workers are moved.

constinit thread_local bool in_region = false;

void pause_briefly() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// A part of a loop's chunks. Each thread starts with the same part of every loop, so that from loop to loop it works on
// the rows in its own caches; only then does it help with the other parts.
struct alignas(64) Lane {
  std::atomic<std::int64_t> next;  // The first unclaimed chunk.
  std::int64_t end;

  bool has_work() const noexcept { return next.load(std::memory_order_relaxed) < end; }
};

// One running loop. Lives on the caller's stack; reachable by workers while it is in the pool's list.
struct Region {
  Region(std::int64_t n, std::int64_t grain, int threads, ThreadPool::Body body)
      : n(n), grain(grain), chunks((n - 1) / grain + 1), body(body) {
    num_lanes = static_cast<int>(std::min<std::int64_t>({threads, kMaxLanes, chunks}));
    for (int i = 0; i < num_lanes; ++i) {
      lanes[i].next.store(first_of(i), std::memory_order_relaxed);
      lanes[i].end = first_of(i + 1);
    }
  }

  const std::int64_t n, grain, chunks;
  const ThreadPool::Body body;
  const int processor = current_processor();  // The caller's.
  bool is_helped = false;                     // Under the pool's mutex.
  int num_lanes;
  Lane lanes[kMaxLanes];        // The first num_lanes are constructed.
  std::atomic<int> helpers{0};  // Workers inside. Grows only under the pool's mutex while the region is listed.
  std::atomic_flag failed{};    // Set by the thread that may write `error`.
  std::exception_ptr error;     // Read by the caller once there are no helpers.
  Region* following = nullptr;  // The list, guarded by the pool's mutex.

  bool has_work() const noexcept {
    return std::any_of(lanes, lanes + num_lanes, [](const Lane& lane) { return lane.has_work(); });
  }

  // Claims and runs chunks until none is left, those of the thread's own lane first.
  void work(int thread) noexcept {
    const bool was_in_region = std::exchange(in_region, true);
    for (int i = 0; i < num_lanes; ++i) work_on(lanes[(thread + i) % num_lanes]);
    in_region = was_in_region;
  }

 private:
  std::int64_t first_of(int lane) const noexcept {
    return chunks / num_lanes * lane + std::min<std::int64_t>(chunks % num_lanes, lane);
  }

  void work_on(Lane& lane) noexcept {
    for (std::int64_t i; lane.has_work() && (i = lane.next.fetch_add(1, std::memory_order_relaxed)) < lane.end;) {
      try {
        body(i * grain, i == chunks - 1 ? n : (i + 1) * grain);
      } catch (...) {
        if (!failed.test_and_set()) error = std::current_exception();
        for (int k = 0; k < num_lanes; ++k) lanes[k].next.store(lanes[k].end, std::memory_order_relaxed);
      }
    }
  }
};

}  // namespace

bool in_parallel_region() noexcept { return in_region; }

struct ThreadPool::State {
  explicit State(int threads) : wanted(threads) {}

  mutable std::mutex mutex;
  std::condition_variable wake;             // For workers: there is a new region, or fewer workers are wanted.
  std::condition_variable left;             // For callers: a worker left a region.
  Region* regions = nullptr;                // Running loops, newest first.
  std::vector<std::thread> workers;         // Worker i ends when i + 1 >= wanted.
  int sleepers = 0;                         // Workers waiting on `wake`.
  int unhelped = 0;                         // Loops in a row that no worker joined.
  std::mutex resizing;                      // Held while threads start and end; taken before `mutex`.
  std::atomic<int> wanted;                  // Threads, the caller included. Changes under both mutexes.
  std::atomic<int> started{1};              // Running threads, the caller included.
  std::atomic<std::uint32_t> published{0};  // Counts regions and changes of `wanted`, for spinning workers.

  void run(Region& region);
  void enlist(Region& region);
  void leave(Region& region) noexcept;
  void call_again() noexcept;
  void start_workers() noexcept;
  void worker_loop(int index) noexcept;
  void help(std::unique_lock<std::mutex>& lock, Region& region, int thread, AvoidedProcessor& avoided) noexcept;
  Region* find_work() const noexcept;
};

// The newest region with an unclaimed chunk, or null. Under the mutex.
Region* ThreadPool::State::find_work() const noexcept {
  Region* region = regions;
  while (region && !region->has_work()) region = region->following;
  return region;
}

void ThreadPool::State::run(Region& region) {
  if (started.load(std::memory_order_relaxed) < wanted.load(std::memory_order_relaxed)) start_workers();
  enlist(region);
  region.work(0);
  leave(region);
}

void ThreadPool::State::enlist(Region& region) {
  int to_wake = 0;
  {
    const std::lock_guard lock(mutex);
    region.following = regions;
    regions = &region;
    published.fetch_add(1, std::memory_order_release);
    to_wake = static_cast<int>(std::min<std::int64_t>(region.chunks - 1, sleepers));
  }
  for (int i = 0; i < to_wake; ++i) wake.notify_one();
}

// Takes the region off the list, then waits for the workers inside it. Leaving the region is the last thing they do
// with it.
void ThreadPool::State::leave(Region& region) noexcept {
  {
    const std::lock_guard lock(mutex);
    Region** link = &regions;
    while (*link != &region) link = &(*link)->following;
    *link = region.following;
    unhelped = region.is_helped ? 0 : unhelped + 1;
    if (unhelped == kPatience) call_again();
  }
  for (int i = 0; i < kSpins && region.helpers.load(std::memory_order_acquire) > 0; ++i) pause_briefly();
  if (region.helpers.load(std::memory_order_acquire) == 0) return;
  std::unique_lock lock(mutex);
  left.wait(lock, [&] { return region.helpers.load(std::memory_order_acquire) == 0; });
}

// Workers that were woken but did not join may be waiting for the caller's own processor. Under the mutex.
void ThreadPool::State::call_again() noexcept {
  unhelped = 0;
  const std::unique_lock only(resizing, std::try_to_lock);
  if (!only) return;
  for (std::thread& worker : workers) move_off_mine(worker.native_handle());
}

void ThreadPool::State::help(std::unique_lock<std::mutex>& lock, Region& region, int thread,
                             AvoidedProcessor& avoided) noexcept {
  region.helpers.fetch_add(1, std::memory_order_relaxed);
  region.is_helped = true;
  lock.unlock();
  avoided.avoid(region.processor);
  region.work(thread);
  lock.lock();
  const bool last = region.helpers.fetch_sub(1, std::memory_order_release) == 1;  // The region may be destroyed now.
  if (last) left.notify_all();
}

void ThreadPool::State::worker_loop(int index) noexcept {
  AvoidedProcessor avoided;
  std::unique_lock lock(mutex);
  while (index + 1 < wanted.load(std::memory_order_relaxed)) {
    if (Region* region = find_work()) {
      help(lock, *region, index + 1, avoided);
      continue;
    }
    const std::uint32_t seen = published.load(std::memory_order_relaxed);
    lock.unlock();
    for (int i = 0; i < kSpins && published.load(std::memory_order_relaxed) == seen; ++i) pause_briefly();
    lock.lock();
    if (published.load(std::memory_order_relaxed) != seen) continue;
    ++sleepers;
    wake.wait(lock, [&] { return published.load(std::memory_order_relaxed) != seen; });
    --sleepers;
  }
}

// Starts the missing workers; continues with fewer when the system refuses. Signals are blocked while a
// thread is made, so it inherits the blocked mask.
void ThreadPool::State::start_workers() noexcept {
  const std::unique_lock only(resizing, std::try_to_lock);
  if (!only) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (static_cast<int>(workers.size()) + 1 < wanted.load()) {
      const int index = static_cast<int>(workers.size());
      workers.emplace_back([this, index] { worker_loop(index); });
      pthread_setname_np(workers.back().native_handle(), fmt::format("plimsoll-{}", index + 1).c_str());
      move_off_mine(workers.back().native_handle());
    }
  } catch (const std::exception&) {  // std::system_error or std::bad_alloc: work with the threads we have.
    const std::lock_guard lock(mutex);
    wanted = static_cast<int>(workers.size()) + 1;
  }
  started = static_cast<int>(workers.size()) + 1;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>(1)) { set_num_threads(num_threads); }

ThreadPool::~ThreadPool() { set_num_threads(1); }

int ThreadPool::num_threads() const noexcept { return state_->wanted; }

void ThreadPool::set_num_threads(int num_threads) {
  if (num_threads < 1 || num_threads > kMaxThreads)
    throw InvalidArgument(fmt::format("threads: {} asked for; use 1 to {}", num_threads, kMaxThreads));
  if (in_region) throw FailedPrecondition("threads: cannot be changed inside a parallel loop; set them before it");
  State& state = *state_;
  const std::lock_guard only(state.resizing);
  {
    const std::lock_guard lock(state.mutex);
    state.wanted = num_threads;
    state.published.fetch_add(1, std::memory_order_release);
  }
  state.wake.notify_all();
  while (static_cast<int>(state.workers.size()) + 1 > num_threads) {
    state.workers.back().join();
    state.workers.pop_back();
  }
  state.started = static_cast<int>(state.workers.size()) + 1;
}

void ThreadPool::parallel_for(std::int64_t n, std::int64_t grain, Body body) {
  if (n <= 0) return;
  const int threads = in_region ? 1 : state_->wanted.load(std::memory_order_relaxed);
  Region region(n, std::max<std::int64_t>(grain, 1), threads, body);
  if (region.num_lanes == 1)
    region.work(0);
  else
    state_->run(region);
  if (region.error) std::rethrow_exception(std::move(region.error));
}

}  // namespace plimsoll::internal
