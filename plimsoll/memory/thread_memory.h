// ThreadMemory: what the memory layer keeps for one thread, and the gate through which others may access it.
//
// The owner works on its state between enter() and leave(), which cost two plain stores and a load. Another thread that
// needs that state (to empty caches, to take back unused quota, to walk the ledger) stops the owner at the gate first:
//   StopThreads stopped;                        // every other thread is now outside enter()/leave()
//   for (ThreadMemory* thread : stopped) ...    // their state may be read and changed
// The cost of stopping is paid by the stopping thread (a membarrier system call), never by the owner.
//
// Lock order: charge windows, arena list, arena, budgets, threads. Nothing that blocks may happen between enter() and
// leave().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/meter.h"

namespace plimsoll::internal {

struct ArenaCache;
class BudgetNode;

class alignas(128) ThreadMemory {
 public:
  static constexpr std::size_t kMaxArenas = 256;

  // The calling thread's state; made at first use and reused by another thread when this one ends.
  static ThreadMemory& current() {
    if (current_ == nullptr) [[unlikely]]
      attach();
    return *current_;
  }

  void enter() noexcept {
#if defined(__SANITIZE_THREAD__)
    busy_.store(1, std::memory_order_seq_cst);
#else
    busy_.store(1, std::memory_order_relaxed);
    if (cheap_barrier_) [[likely]]
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    if (stop_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wait_at_gate();
  }
  void leave() noexcept { busy_.store(0, std::memory_order_release); }

  // This thread's meter of a budget, made at first use (outside enter()).
  Meter& meter(BudgetNode& node) {
    Meter* found = find_meter(node);
    return found ? *found : add_meter(node);
  }
  Meter* find_meter(const BudgetNode& node) const noexcept;

  std::uint16_t id = 0;                          // Unique among living threads; 0 for those beyond 65535.
  Meter* budget = nullptr;                       // Meter of the innermost BudgetScope; nullptr outside any.
  std::array<ArenaCache*, kMaxArenas> caches{};  // By arena number.
  std::vector<std::unique_ptr<Meter>> meters;    // By budget number.
  void* tensors = nullptr;                       // The tensor layer's; never freed, passed on with this.
  std::atomic<bool> in_window{false};            // See charge_window.h.

 private:
  friend class StopThreads;
  friend class ThreadRegistry;

  static void attach();
  static void detach(void* thread) noexcept;
  void wait_at_gate() noexcept;
  Meter& add_meter(BudgetNode& node);

  static constinit thread_local ThreadMemory* current_ __attribute__((tls_model("initial-exec")));
  static bool cheap_barrier_;  // The system offers membarrier.

  std::atomic<std::uint32_t> busy_{0};
  std::atomic<std::uint32_t> stop_{0};
};

class EnterThread {
 public:
  explicit EnterThread(ThreadMemory& thread) noexcept : thread_(thread) { thread_.enter(); }
  ~EnterThread() { thread_.leave(); }
  EnterThread(const EnterThread&) = delete;
  EnterThread& operator=(const EnterThread&) = delete;

 private:
  ThreadMemory& thread_;
};

// While it lives, holds every other thread that `wanted` selects at its gate. The caller must be outside its own gate.
class StopThreads {
 public:
  StopThreads() : StopThreads([](const ThreadMemory&) { return true; }) {}
  template <class F>
  explicit StopThreads(F&& wanted);
  ~StopThreads();
  StopThreads(const StopThreads&) = delete;
  StopThreads& operator=(const StopThreads&) = delete;

  // The stopped threads and the caller's own.
  auto begin() const noexcept { return threads_.begin(); }
  auto end() const noexcept { return threads_.end(); }

 private:
  void stop();
  std::unique_lock<std::mutex> lock_;
  std::vector<ThreadMemory*> threads_;
};

// All threads that ever used memory; never destroyed.
class ThreadRegistry {
 public:
  static ThreadRegistry& instance();

  // Calls f(thread) for each without stopping them: only counters may be read.
  template <class F>
  void for_each(F&& f) {
    const std::lock_guard lock(mutex);
    for (ThreadMemory* thread : threads) f(*thread);
  }
  std::size_t bytes();  // Memory kept for threads, without their caches.

  std::mutex mutex;
  std::vector<ThreadMemory*> threads;
  std::vector<ThreadMemory*> idle;  // Their threads have ended; the next new thread reuses one.

 private:
  ThreadRegistry();
  friend class ThreadMemory;
};

// What other parts of the memory layer do when a thread ends and around fork(); set once by the arena list.
struct ThreadHooks {
  void (*thread_ends)(ThreadMemory&) = nullptr;
  void (*before_fork)() = nullptr;
  void (*after_fork)(bool child) = nullptr;
};
void set_thread_hooks(const ThreadHooks& hooks);

template <class F>
StopThreads::StopThreads(F&& wanted) : lock_(ThreadRegistry::instance().mutex) {
  for (ThreadMemory* thread : ThreadRegistry::instance().threads)
    if (wanted(*thread)) threads_.push_back(thread);
  stop();
}

}  // namespace plimsoll::internal
