#include "plimsoll/tensor/when_all.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/task_run.h"
#include "plimsoll/tensor/task_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

std::size_t num_tensors() { return memory().num_tensors; }
ScopeList* scope_here() { return task_detail::current_context().scope; }

Task<int> steps(std::string& order, char name, int times) {
  for (int i = 0; i < times; ++i) {
    order += name;
    co_await yield();
  }
  co_return times;
}

TEST(WhenAll, TakesTurns) {
  std::string order;
  const auto [a, b, c] = run(when_all(steps(order, 'a', 3), steps(order, 'b', 1), steps(order, 'c', 2)));
  EXPECT_EQ(order, "abcaca");
  EXPECT_EQ(a * 100 + b * 10 + c, 312);
}

TEST(WhenAll, GivesAVectorForAVector) {
  std::string order;
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 4; ++i) tasks.push_back(steps(order, 'x', i));
  EXPECT_EQ(run(when_all(std::move(tasks))), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(run(when_all(std::vector<Task<int>>())).empty());
  EXPECT_EQ(run(when_all()), std::tuple<>());
}

TEST(WhenAll, TakesTasksThatReturnNothing) {
  int calls = 0;
  auto task = [&]() -> Task<> {
    co_await yield();
    ++calls;
  };
  std::string order;
  const std::tuple<std::monostate, int> mixed = run(when_all(task(), steps(order, 'a', 2)));
  EXPECT_EQ(std::get<1>(mixed), 2);
  std::vector<Task<>> tasks;
  tasks.push_back(task());
  tasks.push_back(task());
  run(when_all(std::move(tasks)));
  EXPECT_EQ(calls, 3);
}

TEST(WhenAll, ThrowsTheFirstExceptionWhenAllHaveFinished) {
  bool finished = false;
  auto fails = [](int after, const char* what) -> Task<int> {
    for (int i = 0; i < after; ++i) co_await yield();
    throw std::runtime_error(what);
    co_return 0;
  };
  auto succeeds = [&]() -> Task<int> {
    for (int i = 0; i < 9; ++i) co_await yield();
    finished = true;
    co_return 1;
  };
  try {
    run(when_all(fails(5, "later"), fails(2, "first"), succeeds()));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_TRUE(finished);
}

TEST(WhenAll, RefusesTasksThatWereRun) {
  std::string order;
  std::vector<Task<int>> tasks(2);
  EXPECT_THROW(run(when_all(std::move(tasks))), FailedPrecondition);
}

Task<Tensor> work(std::vector<Tensor>& escaped, int times) {
  TidyScope scope;
  for (int i = 0; i < times; ++i) {
    escaped.push_back(some_tensor());
    co_await yield();
  }
  co_return scope.keep(some_tensor());
}

TEST(WhenAll, KeepsTheScopesOfItsTasksApart) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> a, b, result;
  auto outer = [&]() -> Task<> {
    TidyScope scope;
    const auto [x, y] = co_await when_all(work(a, 3), work(b, 7));
    EXPECT_EQ(num_tensors(), before + 2);
    EXPECT_EQ(x.record()->owner, scope_here());
    EXPECT_EQ(y.record()->owner, scope_here());
    result = {x, y};
  };
  run(outer());
  EXPECT_EQ(num_tensors(), before);
  for (const auto& list : {a, b, result})
    for (const Tensor& tensor : list) EXPECT_TRUE(tensor.is_disposed());
}

TEST(WhenAll, GivesWhatIsMadeOutsideOfScopesToTheAwaitingScope) {
  Tensor made;
  auto task = [&](int times) -> Task<> {
    for (int i = 0; i < times; ++i) co_await yield();
    made = some_tensor();
  };
  auto outer = [&]() -> Task<> {
    const TidyScope scope;
    co_await when_all(task(1), task(2));
    EXPECT_FALSE(made.is_disposed());
    EXPECT_EQ(made.record()->owner, scope_here());
  };
  run(outer());
  EXPECT_TRUE(made.is_disposed());
}

TEST(WhenAll, RunsTasksOnSeveralThreadsAtOnce) {
  const std::size_t before = num_tensors();
  for (int round = 0; round < 20; ++round) {
    std::array<TestThreads, 4> threads;
    auto task = [](TestThreads& own) -> Task<Tensor> {
      TidyScope scope;
      for (int i = 0; i < 10; ++i) {
        const Tensor a = some_tensor();
        co_await own.hop();
        const Tensor b = some_tensor();
        EXPECT_EQ(a.record()->owner, b.record()->owner);
        if (i % 3 == 0) co_await yield();
      }
      co_return scope.keep(some_tensor());
    };
    auto outer = [&]() -> Task<Tensor> {
      TidyScope scope;
      std::vector<Task<Tensor>> tasks;
      for (TestThreads& own : threads) tasks.push_back(task(own));
      const std::vector<Tensor> results = co_await when_all(std::move(tasks));
      EXPECT_EQ(num_tensors(), before + 4);
      for (const Tensor& result : results) EXPECT_EQ(result.record()->owner, scope_here());
      co_return scope.keep(results[3]);
    };
    const Tensor result = run(outer());
    EXPECT_FALSE(result.is_disposed());
    EXPECT_EQ(num_tensors(), before + 1);
  }
  EXPECT_EQ(num_tensors(), before);
}

struct CountingTape final : Interceptor {
  void executed(const Op&, std::span<const Tensor* const>, std::span<const Tensor>) override {}
  CountingTape() { outer = std::exchange(ThreadContext::current().interceptor, this); }
  ~CountingTape() override {
    EXPECT_EQ(task_detail::current_context().interceptor, this);
    ThreadContext::current().interceptor = outer;
  }
};

TEST(WhenAll, SharesATapeOnlyOnItsThread) {
  TestThreads threads;
  auto stays = [](const Interceptor* tape) -> Task<int> {
    co_await yield();
    EXPECT_EQ(task_detail::current_context().interceptor, tape);
    co_return 1;
  };
  auto hops = [&]() -> Task<int> {
    const CountingTape own;
    try {
      co_await threads.hop();
    } catch (const FailedPrecondition&) {
      EXPECT_EQ(task_detail::current_context().interceptor, &own);
      EXPECT_EQ(own.outer, nullptr);
      throw;
    }
    co_return 1;
  };
  {
    const CountingTape tape;
    EXPECT_EQ(run(when_all(stays(&tape), stays(&tape))), std::tuple(1, 1));
    EXPECT_THROW(run(when_all(stays(&tape), hops())), FailedPrecondition);
    EXPECT_EQ(run(hops()), 1);  // Nobody beside it: the tape goes along.
  }
  EXPECT_EQ(run(when_all(stays(nullptr), hops())), std::tuple(1, 1));
}

TEST(WhenAll, RunsManyTasks) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  {
    std::vector<Task<Tensor>> tasks;
    for (int i = 0; i < 20000; ++i) tasks.push_back(work(escaped, 2));
    const std::vector<Tensor> results = run(when_all(std::move(tasks)));
    EXPECT_EQ(num_tensors(), before + 20000);
  }
  escaped.clear();
  EXPECT_EQ(num_tensors(), before);
}

}  // namespace
}  // namespace plimsoll
