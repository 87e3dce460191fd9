// when_all: runs tasks side by side, taking turns, and returns their results together.
//
//   auto [a, b] = co_await when_all(left(x), right(x));            // of different types; void gives std::monostate
//   std::vector<Tensor> all = co_await when_all(std::move(tasks));  // std::vector<Task<Tensor>>; of void: nothing
//   auto results = run(when_all(left(x), right(x)));
//
// Each task starts in order and runs up to its first suspension; from then on they take turns at each yield(), and run
// concurrently when other threads resume them. It is done when all of them have finished; then the first exception that
// was thrown, if any, is rethrown. Tensors that the tasks pass on belong to the awaiting scope.
// The tasks are under the tape of the awaiter as long as they stay on its thread; one that another thread resumes there
// gets FailedPrecondition, because a tape belongs to one thread at a time: make the tape inside the task. Profiles do
// not see what it does on other threads.
// Cost: that of the tasks, and about 30 ns and 200 bytes for each.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/scope_list.h"
#include "plimsoll/tensor/task.h"

namespace plimsoll {

// The tasks that one coroutine awaits together. Must outlive them.
class PLIMSOLL_API TaskGroup final : private TaskListener {
 public:
  explicit TaskGroup(std::vector<TaskState*> tasks) : tasks_(std::move(tasks)) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  class Awaiter {
   public:
    Awaiter(TaskGroup& group, TaskState& awaiting) noexcept : group_(group), awaiting_(awaiting) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) { return group_.start(awaiting_); }
    void await_resume() {
      awaiting_.enter();
      group_.collect();
    }

   private:
    TaskGroup& group_;
    TaskState& awaiting_;
  };
  Awaiter awaiter(TaskState& awaiting) noexcept { return {*this, awaiting}; }

 private:
  bool start(TaskState& awaiting);  // Returns whether there is something to wait for.
  void collect();                   // Call when all have finished. Throws the first exception.
  std::coroutine_handle<> task_finished(TaskState& task) noexcept override;

  const std::vector<TaskState*> tasks_;
  std::unique_ptr<ScopeList[]> made_;  // One per task, because they may run concurrently.
  TaskBounds bounds_;
  TaskState* awaiting_ = nullptr;
  std::atomic<std::size_t> unfinished_{0};
  std::atomic<TaskState*> first_failed_{nullptr};
};

namespace task_detail {

template <class T>
using ValueOf = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
ValueOf<T> take(Promise<T>& promise) {
  if constexpr (std::is_void_v<T>) {
    promise.take();
    return {};
  } else {
    return promise.take();
  }
}

}  // namespace task_detail

template <class... T>
Task<std::tuple<task_detail::ValueOf<T>...>> when_all(Task<T>... tasks) {
  std::tuple<task_detail::Promise<T>*...> promises(&tasks.promise("when_all")...);
  TaskGroup group(std::apply([](auto*... each) { return std::vector<TaskState*>{each...}; }, promises));
  co_await group;
  co_return std::apply(
      [](auto*... each) { return std::tuple<task_detail::ValueOf<T>...>(task_detail::take(*each)...); }, promises);
}

template <class T>
Task<std::conditional_t<std::is_void_v<T>, void, std::vector<task_detail::ValueOf<T>>>> when_all(
    std::vector<Task<T>> tasks) {
  std::vector<task_detail::Promise<T>*> promises;
  promises.reserve(tasks.size());
  for (const Task<T>& task : tasks) promises.push_back(&task.promise("when_all"));
  TaskGroup group(std::vector<TaskState*>(promises.begin(), promises.end()));
  co_await group;
  if constexpr (!std::is_void_v<T>) {
    std::vector<T> results;
    results.reserve(promises.size());
    for (task_detail::Promise<T>* promise : promises) results.push_back(promise->take());
    co_return results;
  }
}

}  // namespace plimsoll
