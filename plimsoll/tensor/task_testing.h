// What tests of tasks await: an event that a test sets, and a change of thread.
#pragma once

#include <coroutine>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

inline Tensor some_tensor() { return make_tensor({.op = "Test"}, {2}, f32, current_device()); }

// co_await event: until set(), which resumes the one that waits inside its call.
class TestEvent {
 public:
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  int await_resume() const noexcept { return 7; }
  void set() { std::exchange(waiting_, nullptr).resume(); }
  bool is_awaited() const noexcept { return waiting_ != nullptr; }

 private:
  std::coroutine_handle<> waiting_;
};

// co_await threads.hop(): continues on a thread of its own, at once.
class TestThreads {
 public:
  ~TestThreads() {
    for (std::thread& thread : threads_) thread.join();
  }

  struct Hop {
    TestThreads& threads;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) { threads.start(waiting); }
    void await_resume() const noexcept {}
  };
  Hop hop() noexcept { return {*this}; }

  // Not inlined: so that nobody takes an earlier thread's answer for this one's.
  [[gnu::noinline]] static std::thread::id here() { return std::this_thread::get_id(); }

 private:
  void start(std::coroutine_handle<> waiting) {
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, waiting] {
      { const std::lock_guard noted(mutex_); }
      waiting.resume();
    });
  }

  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace plimsoll
