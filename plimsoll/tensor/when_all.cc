#include "plimsoll/tensor/when_all.h"

namespace plimsoll {

bool TaskGroup::start(TaskState& awaiting) {
  awaiting.enter();
  TaskStart start{.context = task_detail::current_context(), .loop = awaiting.loop(), .listener = this};
  if (start.context.scope) made_ = std::make_unique<ScopeList[]>(tasks_.size());
  if (start.context.interceptor || start.context.observer) {
    bounds_ = {&ThreadContext::current(), start.context.interceptor, start.context.observer};
    start.bounds = &bounds_;
  }
  awaiting_ = &awaiting;
  unfinished_.store(tasks_.size() + 1, std::memory_order_relaxed);
  awaiting.leave();
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (made_) start.context.scope = &made_[i];
    tasks_[i]->start(start);
  }
  return unfinished_.fetch_sub(1, std::memory_order_acq_rel) != 1;
}

std::coroutine_handle<> TaskGroup::task_finished(TaskState& task) noexcept {
  TaskState* none = nullptr;
  if (task.exception()) first_failed_.compare_exchange_strong(none, &task, std::memory_order_relaxed);
  const std::coroutine_handle<> awaiting = awaiting_->handle();
  return unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1 ? awaiting : nullptr;
}

void TaskGroup::collect() {
  ScopeList* const scope = task_detail::current_context().scope;
  for (std::size_t i = 0; made_ && i < tasks_.size(); ++i) made_[i].end_with_all(scope);
  if (const TaskState* failed = first_failed_.load(std::memory_order_relaxed))
    std::rethrow_exception(failed->exception());
}

}  // namespace plimsoll
