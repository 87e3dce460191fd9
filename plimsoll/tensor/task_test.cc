#include "plimsoll/tensor/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/task_run.h"
#include "plimsoll/tensor/task_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

static_assert(!std::copy_constructible<Task<int>> && std::movable<Task<int>>);
// So that tidy with a callable that returns a task reaches its own refusal, which names TidyScope.
static_assert(visit_detail::Coroutine<Task<Tensor>> && visit_detail::Coroutine<Task<void>>);
static_assert(!visit_detail::Customised<Task<Tensor>> && !visit_detail::Plain<Task<Tensor>>);

std::size_t num_tensors() { return memory().num_tensors; }

Task<int> number(int value) { co_return value; }

TEST(Task, BeginsWhenItIsRun) {
  bool begun = false;
  auto f = [&]() -> Task<int> {
    begun = true;
    co_return 3;
  };
  Task<int> task = f();
  EXPECT_FALSE(begun);
  EXPECT_EQ(run(std::move(task)), 3);
  EXPECT_TRUE(begun);
}

TEST(Task, GivesValuesThatCanOnlyBeMoved) {
  auto make = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  auto outer = [&]() -> Task<std::unique_ptr<int>> { co_return co_await make(); };
  EXPECT_EQ(*run(outer()), 5);
}

TEST(Task, AwaitsTasksThatReturnNothing) {
  int calls = 0;
  auto inner = [&]() -> Task<void> {
    ++calls;
    co_return;
  };
  auto outer = [&]() -> Task<> {
    co_await inner();
    Task<> named = inner();
    co_await named;
    co_await yield();
  };
  run(outer());
  EXPECT_EQ(calls, 2);
}

TEST(Task, ThrowsWhereItIsAwaited) {
  auto fails = [](bool late) -> Task<int> {
    if (late) co_await yield();
    throw std::out_of_range("seven");
    co_return 0;
  };
  auto catches = [&](bool late) -> Task<int> {
    try {
      co_return co_await fails(late);
    } catch (const std::out_of_range&) {
    }
    co_return 1;
  };
  EXPECT_EQ(run(catches(false)), 1);
  EXPECT_EQ(run(catches(true)), 1);
  EXPECT_THROW(run(fails(false)), std::out_of_range);
  EXPECT_THROW(run(fails(true)), std::out_of_range);
}

TEST(Task, RunsOnce) {
  auto twice = []() -> Task<int> {
    Task<int> task = number(1);
    int sum = co_await task;
    sum += co_await task;
    co_return sum;
  };
  EXPECT_THROW(run(twice()), FailedPrecondition);
  Task<int> moved = number(2);
  Task<int> to = std::move(moved);
  EXPECT_THROW(run(std::move(moved)), FailedPrecondition);  // NOLINT: that it is empty is what is tested.
  EXPECT_THROW(run(Task<int>()), FailedPrecondition);
  EXPECT_EQ(run(std::move(to)), 2);
}

TEST(Task, LetsGoOfItsArgumentsWhenItIsNeverRun) {
  const std::size_t before = num_tensors();
  {
    auto f = [](Tensor x) -> Task<Tensor> { co_return x; };
    const Task<Tensor> never = f(some_tensor());
    EXPECT_EQ(num_tensors(), before + 1);
  }
  EXPECT_EQ(num_tensors(), before);
}

struct Counted {  // Awaitables of all kinds; each gives a number.
  int await_resume() { return 1; }
  bool await_ready() { return ready; }
  bool await_suspend(std::coroutine_handle<>) { return false; }
  bool ready = true;
};
struct Member {
  Counted operator co_await() const { return {false}; }
};
struct Free {};
Counted operator co_await(const Free&) { return {false}; }
struct Throwing {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<>) { throw std::out_of_range("no"); }
  void await_resume() {}
};
struct Reference {
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
  int& await_resume() { return value; }
  int value = 0;
};
struct Symmetric {
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> me) { return me; }
  int await_resume() { return 1; }
};

TEST(Task, AwaitsWhateverCanBeAwaited) {
  auto all = []() -> Task<int> {
    const TidyScope scope;
    const Tensor mine = some_tensor();
    Counted lvalue{false};
    Reference reference;
    int sum = co_await Counted{true} + co_await lvalue + co_await Member{} + co_await Free{} + co_await Symmetric{};
    co_await reference = 10;
    try {
      co_await Throwing{};
    } catch (const std::out_of_range&) {
      sum += reference.value;
    }
    const Task<int> constant = number(100);  // Through its operator co_await.
    sum += co_await constant;
    const Tensor later = some_tensor();
    EXPECT_EQ(later.record()->owner, mine.record()->owner);  // The scope came back each time.
    co_return sum;
  };
  const std::size_t before = num_tensors();
  EXPECT_EQ(run(all()), 115);
  EXPECT_EQ(num_tensors(), before);
  EXPECT_EQ(ThreadContext::current().scope, nullptr);
}

TEST(Task, DoesNotGrowTheStack) {
  struct Chain {
    static Task<int> down(int depth) {
      if (depth == 0) co_return 0;
      co_return 1 + co_await down(depth - 1);
    }
    static Task<int> loop(int times) {
      int sum = 0;
      for (int i = 0; i < times; ++i) sum += co_await number(1);
      co_await yield();  // From here on somebody else has resumed it.
      for (int i = 0; i < times; ++i) sum += co_await number(1);
      co_return sum;
    }
  };
  EXPECT_EQ(run(Chain::down(100000)), 100000);
  EXPECT_EQ(run(Chain::loop(200000)), 400000);
}

TEST(Task, RefusesToSuspendInsideOfScopesOfTheThread) {
  const Budget budget("task", 1 << 20);
  auto charged = [&]() -> Task<> {
    const BudgetScope use(budget);
    co_await yield();
  };
  EXPECT_THROW(run(charged()), FailedPrecondition);
  auto awaits = [&]() -> Task<> {
    const BudgetScope use(budget);
    co_await number(1);
  };
  EXPECT_THROW(run(awaits()), FailedPrecondition);
  auto ended = [&]() -> Task<int> {
    { const BudgetScope use(budget); }
    co_await yield();
    co_return co_await number(4);
  };
  const BudgetScope around(budget);
  EXPECT_EQ(run(ended()), 4);
}

class TaskDevices : public DeviceFixture {};

TEST_F(TaskDevices, AreNotTakenAlong) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 8_MiB}, {.memory_limit = 8_MiB}});
  auto elsewhere = []() -> Task<> {
    const DeviceScope second("CPU:1");
    co_await yield();
  };
  try {
    run(elsewhere());
    FAIL();
  } catch (const FailedPrecondition& error) {
    EXPECT_NE(std::string(error.what()).find("DeviceScope"), std::string::npos);
  }
}

// Another library's coroutine, which nobody waits for.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle = nullptr;
};

TEST(Task, CanBeAwaitedByOtherLibrariesCoroutines) {
  TestEvent event;
  int got = 0;
  auto task = [](TestEvent& awaited) -> Task<int> {
    const TidyScope scope;
    co_await yield();  // Nothing to give way to.
    co_return co_await awaited;
  };
  auto other = [](Task<int> awaited, int& result) -> Detached { result = co_await awaited; };
  const Detached detached = other(task(event), got);
  EXPECT_EQ(ThreadContext::current().scope, nullptr);
  EXPECT_EQ(got, 0);
  event.set();
  EXPECT_EQ(got, 7);
  EXPECT_TRUE(detached.handle.done());
  detached.handle.destroy();
}

TEST(Task, AwaitedByOtherLibrariesDoesNotNeedTheScopeItBeganIn) {
  TestEvent event;
  Tensor early, late, received;
  auto task = [&]() -> Task<Tensor> {
    early = some_tensor();
    co_await event;
    late = some_tensor();
    TidyScope scope;
    co_return scope.keep(some_tensor());
  };
  auto other = [](Task<Tensor> awaited, Tensor& result) -> Detached { result = co_await awaited; };
  Detached detached;
  tidy([&] { detached = other(task(), received); });
  EXPECT_FALSE(early.is_disposed());
  tidy([&] {
    event.set();  // The result is received here.
    for (const Tensor& tensor : {early, late, received}) EXPECT_FALSE(tensor.is_disposed());
  });
  for (const Tensor& tensor : {early, late, received}) EXPECT_TRUE(tensor.is_disposed());
  detached.handle.destroy();
}

TEST(Task, GoesOnInsideOfAnotherTaskThatResumesIt) {
  TestEvent event;
  std::vector<int> order;
  auto waits = [&]() -> Task<int> {
    const NameScope named("waits");
    co_await event;
    order.push_back(co_await number(1));
    co_await number(1);
    order.push_back(NameScope::current() == "waits" ? 2 : -2);
    co_return 0;
  };
  TaskRun<int> first(waits());
  first.step();
  auto sets = [&]() -> Task<int> {
    const NameScope named("sets");
    event.set();
    order.push_back(NameScope::current() == "sets" ? 3 : -3);
    co_return co_await number(4);
  };
  order.push_back(run(sets()));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(first.done());
  EXPECT_EQ(NameScope::current(), "");
}

}  // namespace
}  // namespace plimsoll
