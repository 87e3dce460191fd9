// run: runs a task to its end on the calling thread. TaskRun: the same step by step, for programs with their own loop.
//
//   Tensor r = run(step(x));                  // returns when step has finished; its exception is thrown here
//
//   TaskRun<Tensor> work(step(x));
//   while (!work.done()) { work.step(); serve_requests(); }
//   Tensor r = work.get();
//
// Tasks that yield() take turns, first come, first served. When everything that is left waits for other threads, run()
// waits too; a task that such a thread resumes continues there, and returns at its next yield().
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/scope_list.h"
#include "plimsoll/tensor/task.h"

namespace plimsoll {

// The queue of the tasks of one run() that are ready to continue.
class PLIMSOLL_API TaskLoop final : private TaskListener {
 public:
  TaskLoop() = default;
  TaskLoop(const TaskLoop&) = delete;
  TaskLoop& operator=(const TaskLoop&) = delete;

  // Starts it; done() becomes true when it, and with it everything it awaits, has finished.
  void start(TaskState& task, const ThreadContext& context);
  bool step();    // Resumes the first in the queue up to its next suspension. False when the queue is empty.
  void finish();  // Until done(); waits for other threads.
  bool done() const;

 private:
  friend class YieldAwaiter;
  std::coroutine_handle<> task_finished(TaskState& task) noexcept override;
  void add(YieldAwaiter& last);
  void remove(YieldAwaiter& one) noexcept;
  TaskState* pop() noexcept;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  YieldAwaiter* first_ = nullptr;  // Guarded by mutex_, as all of them.
  YieldAwaiter* last_ = nullptr;
  bool done_ = false;
};

namespace task_detail {
[[noreturn]] PLIMSOLL_API void refuse_second_get();
}

// The task's result belongs to the innermost scope here, like any tensor made here. Inside a task, run() keeps the
// thread: co_await instead. Throws FailedPrecondition for a task that was awaited or run before.
template <class T>
T run(Task<T> task) {
  auto& promise = task.promise("run");
  TaskLoop loop;
  loop.start(promise, task_detail::current_context());
  loop.finish();
  return promise.take();
}

// A task that the caller resumes step by step. Thread safety: one thread at a time; it must not be destroyed while one
// of its tasks runs on another thread, nor outlive a tape it was made under.
template <class T>
class TaskRun {
 public:
  // The task starts with the first step(), in the current context except for the tidy scope.
  explicit TaskRun(Task<T> task)
      : context_(task_detail::current_context()), task_(std::move(task)), promise_(task_.promise("TaskRun")) {
    context_.scope = &made_;
  }
  TaskRun(const TaskRun&) = delete;
  TaskRun& operator=(const TaskRun&) = delete;
  ~TaskRun() = default;  // What has not finished is destroyed as it is, with all tensors it made.

  // Continues the first task in the queue up to its next suspension. False when none is ready: everything waits for
  // other threads, or is done.
  bool step() {
    if (!std::exchange(started_, true)) return loop_.start(promise_, context_), true;
    return loop_.step();
  }
  bool done() const { return loop_.done(); }

  // Runs the rest and returns the result, once. Tensors that the task made outside its own scopes belong, with the
  // result, to the innermost scope here.
  T get() {
    if (std::exchange(taken_, true)) task_detail::refuse_second_get();
    if (!started_) step();
    loop_.finish();
    made_.end_with_all(task_detail::current_context().scope);
    return promise_.take();
  }

 private:
  ScopeList made_;
  ThreadContext context_;
  TaskLoop loop_;
  Task<T> task_;
  typename Task<T>::promise_type& promise_;
  bool started_ = false;
  bool taken_ = false;
};

}  // namespace plimsoll
