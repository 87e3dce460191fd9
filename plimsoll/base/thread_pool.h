// Parallel loops on one pool of threads, in which the calling thread takes part.
//
//   parallel_for(n, 16384, [&](std::int64_t begin, std::int64_t end) {
//     for (std::int64_t i = begin; i < end; ++i) y[i] = x[i] * a;
//   });
//
// The loop is cut into chunks [0, grain), [grain, 2 grain), ...: a function of n and grain alone, never of the number
// of threads, so a result that depends on the cut is the same on every machine. Every chunk runs exactly once, each as
// one call. Each thread starts with its own part of the chunks, the same in loops of the same length, so that it works
// on the rows in its own caches; then it claims what is left of the other parts. The caller takes part and waits only
// for chunks that others have started. A loop inside a chunk runs in the same thread, cut the same way. Running in
// parallel pays off from about 32k light elements: choose the grain so that a chunk takes at least 5 us.
//
// When a chunk throws, chunks that have not started are skipped and the first exception is rethrown in the caller, once
// no thread is inside the loop. The pool stays usable.
//
// The pool is a guest in the process: workers start at the first loop that can use them, block all signals, sleep when
// idle after a short spin, and do nothing but these loops. If threads cannot be started the loops run on fewer. After
// fork() the child has a fresh pool that starts its own workers when needed; do not fork in a chunk.
//
// Thread safety: any thread may start a loop at any time; loops share the workers. Cost: no heap allocation; about 0.5
// us for a small loop when workers are awake, about 10 us when they must be woken.
#pragma once

#include <cstdint>
#include <memory>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"

namespace plimsoll::internal {

// A separate pool, for tests and special needs. Everything else uses the process's pool through the functions below.
class PLIMSOLL_API ThreadPool {
 public:
  using Body = FunctionRef<void(std::int64_t begin, std::int64_t end)>;

  explicit ThreadPool(int num_threads);  // Counts the caller; at least 1. Starts no thread yet.
  ~ThreadPool();                         // Ends the workers. Requires that no loop is running.
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const noexcept;
  // Loops already running finish with the threads they have. Throws InvalidArgument when below 1 or above 1024,
  // FailedPrecondition inside a chunk.
  void set_num_threads(int num_threads);
  void parallel_for(std::int64_t n, std::int64_t grain, Body body);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// Runs `body(begin, end)` over all of [0, n). A grain below 1 counts as 1; nothing happens for n <= 0.
PLIMSOLL_API void run_parallel_for(std::int64_t n, std::int64_t grain, ThreadPool::Body body);
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& body) {
  if (n > grain)
    run_parallel_for(n, grain, body);
  else if (n > 0)
    body(std::int64_t{0}, n);
}

// Threads that loops use, the caller included. At first usable_processors().
PLIMSOLL_API int num_threads();
PLIMSOLL_API void set_num_threads(int num_threads);  // As ThreadPool::set_num_threads.

// True inside a chunk: a loop started now would run in this thread alone.
PLIMSOLL_API bool in_parallel_region() noexcept;

}  // namespace plimsoll::internal
