#include "plimsoll/tensor/task.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/scope_list.h"

namespace plimsoll {
namespace {

// A loop that resumes tasks one after the other, so that a task that continues with another one returns first.
struct Driver {
  std::coroutine_handle<> next;
};
// The loop that resumed the running task; nullptr when something else did.
constinit thread_local Driver* driver = nullptr;

void go_on_to(std::coroutine_handle<> task) {
  if (driver)
    driver->next = task;
  else
    task_detail::drive(task);
}

// Ends a chain of scopes or tapes before `end`, which may no longer exist.
template <class T>
void cut(T*& chain, const T* end) noexcept {
  T** place = &chain;
  while (*place && *place != end) place = &(*place)->outer;
  *place = nullptr;
}

}  // namespace

namespace task_detail {

void drive(std::coroutine_handle<> task) {
  Driver mine{task};
  struct Restore {
    Driver* before = driver;
    ~Restore() { driver = before; }
  } restore;
  while (mine.next) {
    driver = &mine;
    std::exchange(mine.next, nullptr).resume();
  }
}

ThreadContext current_context() noexcept { return ThreadContext::current(); }

void refuse_empty(const char* where) {
  throw FailedPrecondition(fmt::format("{}: there is no task; was it moved from?", where));
}

}  // namespace task_detail

TaskState::TaskState() noexcept = default;
TaskState::~TaskState() = default;

TaskState::Place TaskState::Place::here() noexcept {
  return {ThreadContext::current(), ThreadMemory::current().budget, DeviceScope::current()};
}

void TaskState::require_new(const char* where) const {
  if (phase_ != Phase::kNew)
    throw FailedPrecondition(fmt::format("{}: the task was awaited or run before; a task runs once", where));
}

void TaskState::check_portable() const {
  const char* const scope = ThreadMemory::current().budget != resumer_.budget ? "BudgetScope"
                            : DeviceScope::current() != resumer_.device       ? "DeviceScope"
                                                                              : nullptr;
  if (scope)
    throw FailedPrecondition(
        fmt::format("co_await: inside of a {} that the task made, which belongs to its thread; end it before, or put "
                    "it around run()",
                    scope));
}

void TaskState::inherit(const ThreadContext& from) noexcept {
  base_scope_ = from.scope;
  base_interceptor_ = from.interceptor;
  base_observer_ = from.observer;
  phase_ = Phase::kOn;
}

void TaskState::start_for(TaskState& awaiting) {
  awaiting.enter();
  awaiting.check_portable();
  parent_ = &awaiting;
  loop_ = awaiting.loop_;
  bounds_ = awaiting.bounds_;
  resumer_ = awaiting.resumer_;
  awaiting.own_ = ThreadContext::current();
  awaiting.phase_ = Phase::kOff;
  inherit(awaiting.own_);
  go_on_to(self_);
}

std::coroutine_handle<> TaskState::start_for(std::coroutine_handle<> awaiting) {
  made_ = std::make_unique<ScopeList>();
  continuation_ = awaiting;
  resumer_ = Place::here();
  ThreadContext& context = ThreadContext::current();
  context.scope = made_.get();
  context.interceptor = nullptr;
  context.observer = nullptr;
  inherit(context);
  driver = nullptr;
  return self_;
}

void TaskState::receive() noexcept {
  if (made_) made_->end_with_all(ThreadContext::current().scope);
}

void TaskState::start(const TaskStart& start) {
  listener_ = start.listener;
  loop_ = start.loop;
  bounds_ = start.bounds;
  resumer_ = Place::here();
  inherit(start.context);
  ThreadContext::current() = start.context;
  task_detail::drive(self_);
}

void TaskState::leave() {
  if (phase_ == Phase::kOff) return;
  check_portable();
  own_ = std::exchange(ThreadContext::current(), resumer_.context);
  phase_ = Phase::kOff;
}

void TaskState::enter() {
  if (phase_ == Phase::kOn) return;
  resumer_ = Place::here();
  phase_ = Phase::kOn;
  driver = nullptr;
  ThreadContext& context = ThreadContext::current();
  const bool elsewhere = bounds_ && bounds_->thread != &context;
  if (elsewhere) {
    if (bounds_->interceptor) cut(own_.interceptor, bounds_->interceptor);
    if (own_.observer == bounds_->observer) own_.observer = nullptr;
  }
  context = own_;
  if (elsewhere && bounds_->interceptor)
    throw FailedPrecondition(
        "when_all: a task under the tape of its awaiter was resumed on another thread, and a tape belongs to one "
        "thread "
        "at a time; make the tape inside of the task");
}

std::coroutine_handle<> TaskState::finish() noexcept {
  phase_ = Phase::kFinished;
  ThreadContext& context = ThreadContext::current();
  if (parent_) {
    parent_->resumer_ = resumer_;
    parent_->phase_ = Phase::kOn;
    context = parent_->own_;
    go_on_to(parent_->self_);
    return std::noop_coroutine();
  }
  context = resumer_.context;
  if (continuation_) return continuation_;
  if (const std::coroutine_handle<> next = listener_->task_finished(*this)) go_on_to(next);
  return std::noop_coroutine();
}

void TaskState::destroy() noexcept {
  if (phase_ != Phase::kOff) return self_.destroy();
  ThreadContext& context = ThreadContext::current();
  const ThreadContext before = context;
  cut(own_.scope, base_scope_);
  if (own_.interceptor == base_interceptor_) own_.interceptor = nullptr;
  if (own_.observer == base_observer_) own_.observer = nullptr;
  context = own_;
  self_.destroy();  // As if the task were running: its scopes and tapes end in order.
  context = before;
}

}  // namespace plimsoll
