#include "plimsoll/tensor/task_run.h"

#include "plimsoll/base/error.h"

namespace plimsoll {

void task_detail::refuse_second_get() {
  throw FailedPrecondition("get: the result of this TaskRun was taken before; keep it");
}

YieldAwaiter::~YieldAwaiter() {
  if (queued_) task_.loop()->remove(*this);
}

void YieldAwaiter::await_suspend(std::coroutine_handle<>) {
  task_.leave();
  task_.loop()->add(*this);
}

void TaskLoop::start(TaskState& task, const ThreadContext& context) {
  task.start({.context = context, .loop = this, .listener = this});
}

bool TaskLoop::step() {
  TaskState* task;
  {
    const std::lock_guard lock(mutex_);
    task = pop();
  }
  if (task) task_detail::drive(task->handle());
  return task != nullptr;
}

void TaskLoop::finish() {
  for (;;) {
    TaskState* task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return done_ || first_; });
      if (done_) return;
      task = pop();
    }
    task_detail::drive(task->handle());
  }
}

bool TaskLoop::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::coroutine_handle<> TaskLoop::task_finished(TaskState&) noexcept {
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();  // Under the lock: afterwards the loop may be gone.
  return nullptr;
}

void TaskLoop::add(YieldAwaiter& last) {
  const std::lock_guard lock(mutex_);
  last.previous_ = std::exchange(last_, &last);
  (last.previous_ ? last.previous_->next_ : first_) = &last;
  last.queued_ = true;
  changed_.notify_all();
}

void TaskLoop::remove(YieldAwaiter& one) noexcept {
  const std::lock_guard lock(mutex_);
  (one.previous_ ? one.previous_->next_ : first_) = one.next_;
  (one.next_ ? one.next_->previous_ : last_) = one.previous_;
}

TaskState* TaskLoop::pop() noexcept {
  YieldAwaiter* const one = first_;
  if (!one) return nullptr;
  first_ = one->next_;
  (first_ ? first_->previous_ : last_) = nullptr;
  one->queued_ = false;
  return &one->task_;
}

}  // namespace plimsoll
