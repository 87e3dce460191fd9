// Task: a coroutine that computes with tensors, and whose scopes follow it from thread to thread.
//
//   Task<Tensor> step(Tensor x) {
//     TidyScope scope;
//     Tensor h = relu(x);
//     Tensor y = co_await other(h);            // a task; or anything else that can be awaited
//     co_return scope.keep(y * 2.f);           // belongs to the awaiting scope; h is disposed
//   }
//   Tensor r = run(step(x));                   // task_run.h
//
// A task starts when it is awaited or run, and runs once. It starts in its awaiter's context: tidy scope, name scope,
// tape, category, step. Its changes to that context follow it: each suspension takes them off the thread, which returns
// to its previous context; each resumption puts them back, on whichever thread that is. So tasks that take turns never
// end or fill each other's scopes, and a suspended task's scopes are on no thread. Tensors that it makes outside its
// own scopes belong to the scope of its awaiter.
// An exception that leaves the task is thrown where it is awaited. A task that is destroyed while suspended disposes of
// what its own scopes hold, ends its tapes, and touches no other scope; what it passed on with keep() is left to its
// handles. Suspending inside a BudgetScope or DeviceScope that the task itself made is FailedPrecondition, because
// those belong to their thread: put them around run(), or end them before co_await.
// Thread safety: a task runs on one thread at a time, each time the one that resumes it; a Task object is a value like
// any other. Cost: one heap allocation and about 40 ns for each awaited task. The stack does not grow with the number
// or depth of awaited tasks, optimised or not.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

namespace internal {
struct Meter;
}  // namespace internal
class TaskLoop;
class TaskState;
template <class T>
class Task;

// Notified when a task ends that no coroutine awaits.
class TaskListener {
 public:
  // Returns the coroutine to continue with, or nothing. The task's frame may be gone when it returns.
  virtual std::coroutine_handle<> task_finished(TaskState& task) noexcept = 0;

 protected:
  ~TaskListener() = default;
};

// Where the tasks of one when_all started, under a tape or profile that they share.
struct TaskBounds {
  const ThreadContext* thread = nullptr;
  Interceptor* interceptor = nullptr;
  OpObserver* observer = nullptr;
};

// The context that a task starts with.
struct TaskStart {
  ThreadContext context;
  TaskLoop* loop = nullptr;
  const TaskBounds* bounds = nullptr;
  TaskListener* listener = nullptr;
};

// The part of a task that does not depend on its result type: its context, and what continues when it ends.
class PLIMSOLL_API TaskState {
 public:
  TaskState(const TaskState&) = delete;
  TaskState& operator=(const TaskState&) = delete;

  // Starts it, once: for a task; for another library's coroutine, which continues with the returned handle and whose
  // thread's scopes and tapes may end meanwhile, so that the task has none of them; or for a listener: this returns
  // when the task is suspended or has finished.
  void start_for(TaskState& awaiting);
  std::coroutine_handle<> start_for(std::coroutine_handle<> awaiting);
  void start(const TaskStart& start);
  void require_new(const char* where) const;  // Throws FailedPrecondition when it was awaited or run before.

  // Takes it off the thread before it suspends: anyone may resume it afterwards, even before the awaited call returns.
  // Does nothing when it is already off: for `co_await a + co_await b` gcc suspends for b before it asks a for its
  // value. Throws FailedPrecondition inside a BudgetScope or DeviceScope of its own, having changed nothing.
  void leave();
  // Puts it on the thread that resumed it; does nothing when it is already on. Throws FailedPrecondition, being on,
  // when a tape it shares with other tasks is on another thread.
  void enter();

  std::coroutine_handle<> handle() const noexcept { return self_; }
  TaskLoop* loop() const noexcept { return loop_; }
  const ThreadContext& context() const noexcept { return own_; }  // While it is off.
  const std::exception_ptr& exception() const noexcept { return exception_; }
  void receive() noexcept;  // Called by another library's coroutine: passes what the task made to the innermost scope.

  void destroy() noexcept;  // With its frame. Requires that it is not running.

 protected:
  TaskState() noexcept;
  ~TaskState();

  std::coroutine_handle<> finish() noexcept;

  std::coroutine_handle<> self_;
  std::exception_ptr exception_;

 private:
  // What is on the thread while no task is.
  struct Place {
    ThreadContext context;
    const Meter* budget = nullptr;
    std::size_t device = 0;
    static Place here() noexcept;
  };
  enum class Phase : unsigned char { kNew, kOff, kOn, kFinished };

  void check_portable() const;
  void inherit(const ThreadContext& from) noexcept;

  ThreadContext own_;
  Place resumer_;
  ScopeList* base_scope_ = nullptr;  // The context it started in.
  Interceptor* base_interceptor_ = nullptr;
  OpObserver* base_observer_ = nullptr;
  TaskLoop* loop_ = nullptr;
  const TaskBounds* bounds_ = nullptr;
  TaskState* parent_ = nullptr;  // One of these three waits for it.
  std::coroutine_handle<> continuation_;
  TaskListener* listener_ = nullptr;
  std::unique_ptr<ScopeList> made_;  // For another library's coroutine.
  Phase phase_ = Phase::kNew;
};

// A place in the queue of a run(), where co_await yield() waits.
class PLIMSOLL_API YieldAwaiter {
 public:
  explicit YieldAwaiter(TaskState& task) noexcept : task_(task) {}
  ~YieldAwaiter();  // Leaves the queue if its task is destroyed there.
  YieldAwaiter(const YieldAwaiter&) = delete;
  YieldAwaiter& operator=(const YieldAwaiter&) = delete;

  bool await_ready() const noexcept { return task_.loop() == nullptr; }
  void await_suspend(std::coroutine_handle<>);
  void await_resume() { task_.enter(); }

 private:
  friend class TaskLoop;
  TaskState& task_;
  YieldAwaiter* previous_ = nullptr;
  YieldAwaiter* next_ = nullptr;
  bool queued_ = false;
};

// co_await yield(): lets the other tasks of the same run() continue, each up to its next suspension. Continues on the
// thread of the run(). Outside any run() it does nothing.
struct Yield {};
inline Yield yield() noexcept { return {}; }

class TaskGroup;  // when_all.h

namespace task_detail {

template <class T>
concept HasMemberAwait = requires(T&& value) {
  static_cast<T&&>(value).operator co_await();
};
template <class T>
concept HasFreeAwait = requires(T&& value) {
  operator co_await(static_cast<T&&>(value));
};

template <class T>
decltype(auto) awaiter_of(T&& value) {
  if constexpr (HasMemberAwait<T>)
    return static_cast<T&&>(value).operator co_await();
  else if constexpr (HasFreeAwait<T>)
    return operator co_await(static_cast<T&&>(value));
  else
    return static_cast<T&&>(value);
}

// Wraps any awaiter so that the task is off the thread while it waits.
template <class Awaiter>
class OutsideAwaiter {
 public:
  template <class T>
  OutsideAwaiter(TaskState& task, T&& value) : task_(task), inner_(awaiter_of(std::forward<T>(value))) {}

  bool await_ready() { return static_cast<bool>(inner_.await_ready()); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> awaiting) {
    task_.leave();
    try {
      return inner_.await_suspend(awaiting);
    } catch (...) {  // It was not suspended.
      task_.enter();
      throw;
    }
  }
  decltype(auto) await_resume() {
    task_.enter();
    return inner_.await_resume();
  }

 private:
  TaskState& task_;
  Awaiter inner_;
};

template <class T>
class Promise;

struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <class P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) const noexcept {
    return self.promise().finish();
  }
  void await_resume() const noexcept {}
};

template <class T>
class TaskAwaiter {
 public:
  explicit TaskAwaiter(Promise<T>& task) : task_(task) {}

  bool await_ready() const noexcept { return false; }
  template <class Awaiting>
  auto await_suspend(std::coroutine_handle<Awaiting> awaiting) {
    if constexpr (std::derived_from<Awaiting, TaskState>)
      task_.start_for(static_cast<TaskState&>(awaiting.promise()));
    else
      return task_.start_for(awaiting);
  }
  T await_resume() {
    task_.receive();
    return task_.take();
  }

 private:
  Promise<T>& task_;
};

class PromiseBase : public TaskState {
 public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

  template <class T>
  TaskAwaiter<T> await_transform(Task<T>& task) {
    return TaskAwaiter<T>(task.promise("co_await"));
  }
  template <class T>
  TaskAwaiter<T> await_transform(Task<T>&& task) {
    return TaskAwaiter<T>(task.promise("co_await"));
  }
  YieldAwaiter await_transform(Yield) noexcept { return YieldAwaiter(*this); }
  template <std::same_as<TaskGroup> Group>
  auto await_transform(Group& group) noexcept {
    return group.awaiter(*this);
  }
  template <class Awaitable>
  auto await_transform(Awaitable&& awaitable) {
    return OutsideAwaiter<decltype(awaiter_of(std::forward<Awaitable>(awaitable)))>(*this,
                                                                                    std::forward<Awaitable>(awaitable));
  }

  using TaskState::finish;
};

template <class T>
class Promise final : public PromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <class U = T>
  requires std::constructible_from<T, U&&>
  void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
  T take() {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() {
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  }
};

[[noreturn]] PLIMSOLL_API void refuse_empty(const char* where);
PLIMSOLL_API ThreadContext current_context() noexcept;
// Resumes a task, and those that it continues with, until one is suspended.
PLIMSOLL_API void drive(std::coroutine_handle<> task);

}  // namespace task_detail

template <class T = void>
class [[nodiscard]] Task {
  static_assert(std::is_void_v<T> || (std::is_object_v<T> && !std::is_const_v<T>), "Task: returns a value or void");

 public:
  using promise_type = task_detail::Promise<T>;

  Task() noexcept = default;  // No task: awaiting or running it is FailedPrecondition.
  Task(Task&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Task old(std::exchange(promise_, std::exchange(other.promise_, nullptr)));
    return *this;
  }
  ~Task() {
    if (promise_) promise_->destroy();
  }

  // For other libraries' coroutines; a task's own co_await does not come here.
  task_detail::TaskAwaiter<T> operator co_await() const { return task_detail::TaskAwaiter<T>(promise("co_await")); }

  // Throws FailedPrecondition that begins with `where` for a task that has started.
  promise_type& promise(const char* where) const {
    if (!promise_) task_detail::refuse_empty(where);
    promise_->require_new(where);
    return *promise_;
  }

 private:
  friend promise_type;
  explicit Task(promise_type* promise) noexcept : promise_(promise) {}
  promise_type* promise_ = nullptr;
};

namespace task_detail {

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  self_ = std::coroutine_handle<Promise>::from_promise(*this);
  return Task<T>(this);
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  self_ = std::coroutine_handle<Promise>::from_promise(*this);
  return Task<void>(this);
}

}  // namespace task_detail
}  // namespace plimsoll
