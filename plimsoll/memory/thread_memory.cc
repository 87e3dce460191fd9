#include "plimsoll/memory/thread_memory.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/charge_window.h"

namespace plimsoll::internal {
namespace {

int membarrier(int command) { return static_cast<int>(syscall(SYS_membarrier, command, 0, 0)); }

bool register_membarrier() {
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
#endif
}

ThreadHooks hooks;
std::optional<StopThreads> stopped_for_fork;
pthread_key_t thread_end_key;

}  // namespace

constinit thread_local ThreadMemory* ThreadMemory::current_ = nullptr;
bool ThreadMemory::cheap_barrier_ = false;

void set_thread_hooks(const ThreadHooks& to) { hooks = to; }

ThreadRegistry& ThreadRegistry::instance() {
  static auto* registry = new ThreadRegistry;
  return *registry;
}

std::size_t ThreadRegistry::bytes() {
  const std::lock_guard centers(MeterCenter::mutex());  // Guards the threads' lists of meters.
  std::size_t total = 0;
  for_each([&](const ThreadMemory& thread) {
    total += sizeof(ThreadMemory) + thread.meters.capacity() * sizeof(thread.meters[0]);
    for (const auto& meter : thread.meters) total += meter ? sizeof(Meter) : 0;
  });
  return total;
}

ThreadRegistry::ThreadRegistry() {
  ThreadMemory::cheap_barrier_ = register_membarrier();
  pthread_key_create(&thread_end_key, &ThreadMemory::detach);
  pthread_atfork(
      [] {
        close_windows();
        BudgetNode::before_fork();
        if (hooks.before_fork) hooks.before_fork();
        MeterCenter::mutex().lock();
        stopped_for_fork.emplace();  // So that the child finds the others' caches and counts consistent.
      },
      [] {
        stopped_for_fork.reset();
        MeterCenter::mutex().unlock();
        if (hooks.after_fork) hooks.after_fork(false);
        BudgetNode::after_fork();
        open_windows();
      },
      [] {
        ThreadMemory::cheap_barrier_ = register_membarrier();
        for (ThreadMemory* thread : instance().threads) {  // The other threads do not exist here.
          thread->busy_.store(0);
          thread->in_window.store(false);
        }
        stopped_for_fork.reset();
        MeterCenter::mutex().unlock();
        if (hooks.after_fork) hooks.after_fork(true);
        BudgetNode::after_fork();
        open_windows();
      });
}

void ThreadMemory::attach() {
  ThreadRegistry& registry = ThreadRegistry::instance();
  ThreadMemory* thread = nullptr;
  {
    const std::lock_guard lock(registry.mutex);
    if (!registry.idle.empty()) {
      thread = registry.idle.back();
      registry.idle.pop_back();
    } else {
      thread = new ThreadMemory;
      registry.threads.push_back(thread);
      registry.idle.reserve(registry.threads.size());  // So that a thread can end without allocating.
      if (registry.threads.size() <= UINT16_MAX) thread->id = static_cast<std::uint16_t>(registry.threads.size());
    }
  }
  pthread_setspecific(thread_end_key, thread);
  current_ = thread;
}

void ThreadMemory::detach(void* data) noexcept {
  auto* thread = static_cast<ThreadMemory*>(data);
  if (hooks.thread_ends) hooks.thread_ends(*thread);
  {
    const std::lock_guard lock(MeterCenter::mutex());
    for (const auto& meter : thread->meters)
      if (meter) meter->center->detach(*meter);
    thread->meters.clear();
    thread->budget = nullptr;
  }
  current_ = nullptr;
  ThreadRegistry& registry = ThreadRegistry::instance();
  const std::lock_guard lock(registry.mutex);
  registry.idle.push_back(thread);
}

void ThreadMemory::wait_at_gate() noexcept {
  do {
    busy_.store(0, std::memory_order_release);
    for (int spins = 0;; ++spins) {
      const std::uint32_t stops = stop_.load(std::memory_order_acquire);
      if (stops == 0) break;
      if (spins > 64) stop_.wait(stops, std::memory_order_acquire);
    }
    busy_.store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } while (stop_.load(std::memory_order_seq_cst) != 0);
}

void StopThreads::stop() {
  const ThreadMemory* self = ThreadMemory::current_;
  bool others = false;
  for (ThreadMemory* thread : threads_) {
    if (thread == self) continue;
    thread->stop_.fetch_add(1, std::memory_order_seq_cst);
    others = true;
  }
  if (!others) return;
  if (ThreadMemory::cheap_barrier_)
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
  for (ThreadMemory* thread : threads_)
    if (thread != self)
      for (int spins = 0; thread->busy_.load(std::memory_order_seq_cst) != 0; ++spins)
        if (spins > 64) std::this_thread::yield();
}

StopThreads::~StopThreads() {
  const ThreadMemory* self = ThreadMemory::current_;
  for (ThreadMemory* thread : threads_) {
    if (thread == self) continue;
    thread->stop_.fetch_sub(1, std::memory_order_seq_cst);
    thread->stop_.notify_all();
  }
}

Meter* ThreadMemory::find_meter(const BudgetNode& node) const noexcept {
  return node.number() < meters.size() ? meters[node.number()].get() : nullptr;
}

Meter& ThreadMemory::add_meter(BudgetNode& node) {
  Meter* parent = node.parent() ? &meter(*node.parent()) : nullptr;
  const std::lock_guard lock(MeterCenter::mutex());
  if (meters.size() <= node.number()) meters.resize(node.number() + 1);
  meters[node.number()] = std::make_unique<Meter>();
  Meter& made = *meters[node.number()];
  made.parent = parent;
  node.attach(made);
  return made;
}

}  // namespace plimsoll::internal
