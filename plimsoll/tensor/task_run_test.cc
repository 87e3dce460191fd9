#include "plimsoll/tensor/task_run.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/task_testing.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/when_all.h"

namespace plimsoll {
namespace {

std::size_t num_tensors() { return memory().num_tensors; }
ScopeList* scope_here() { return task_detail::current_context().scope; }

Task<Tensor> later(std::vector<Tensor>& escaped) {
  TidyScope scope;
  escaped.push_back(some_tensor());
  co_await yield();
  escaped.push_back(some_tensor());
  co_return scope.keep(some_tensor());
}

Task<Tensor> both(std::vector<Tensor>& escaped) {
  TidyScope scope;
  const Tensor first = co_await later(escaped);
  const Tensor second = co_await later(escaped);
  escaped.push_back(first);
  EXPECT_FALSE(first.is_disposed());
  co_return scope.keep(second);
}

TEST(TaskScopes, FollowTheTask) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  {
    const Tensor kept = run(both(escaped));
    EXPECT_FALSE(kept.is_disposed());
    EXPECT_EQ(num_tensors(), before + 1);
    ASSERT_EQ(escaped.size(), 5u);
    for (const Tensor& tensor : escaped) EXPECT_TRUE(tensor.is_disposed());
  }
  EXPECT_EQ(num_tensors(), before);
}

TEST(TaskScopes, HandToTheScopeThatAwaits) {
  std::vector<Tensor> escaped;
  Tensor result;
  tidy([&] {
    result = run(later(escaped));
    EXPECT_EQ(result.record()->owner, scope_here());
    EXPECT_FALSE(result.is_disposed());
  });
  EXPECT_TRUE(result.is_disposed());
  auto inner = [&]() -> Task<Tensor> { co_return some_tensor(); };  // Without a scope of its own.
  auto outer = [&]() -> Task<> {
    TidyScope scope;
    result = co_await inner();
    EXPECT_EQ(result.record()->owner, scope_here());
    co_await yield();
    EXPECT_FALSE(result.is_disposed());
  };
  run(outer());
  EXPECT_TRUE(result.is_disposed());
}

TEST(TaskScopes, AreOnNoThreadWhileSuspended) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  TidyScope mine;
  ScopeList* const here = scope_here();
  TaskRun<Tensor> one(both(escaped)), two(both(escaped));
  std::vector<Tensor> own;
  while (!one.done() || !two.done()) {
    one.step();
    EXPECT_EQ(scope_here(), here);
    own.push_back(some_tensor());
    EXPECT_EQ(own.back().record()->owner, here);
    two.step();
    EXPECT_EQ(scope_here(), here);
  }
  const Tensor first = one.get();
  EXPECT_EQ(num_tensors(), before + own.size() + 2);
  EXPECT_EQ(first.record()->owner, here);
  EXPECT_FALSE(two.get().is_disposed());
  for (const Tensor& tensor : escaped) EXPECT_TRUE(tensor.is_disposed());
  for (const Tensor& tensor : own) EXPECT_FALSE(tensor.is_disposed());
}

TEST(TaskScopes, OfInterleavedTasksKeepExactCounts) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  TaskRun<Tensor> one(later(escaped)), two(later(escaped));
  one.step();
  EXPECT_EQ(num_tensors(), before + 1);
  two.step();
  EXPECT_EQ(num_tensors(), before + 2);
  one.step();  // Ends before two, which began inside nothing of it.
  EXPECT_EQ(num_tensors(), before + 2);
  EXPECT_TRUE(escaped[0].is_disposed());
  EXPECT_FALSE(escaped[1].is_disposed());
  two.step();
  EXPECT_EQ(num_tensors(), before + 2);
  { const Tensor result = one.get(); }
  EXPECT_EQ(num_tensors(), before + 1);
  { const Tensor result = two.get(); }
  EXPECT_EQ(num_tensors(), before);
}

TEST(TaskContext, FollowsTheTask) {
  struct Nobody final : Interceptor {
    void executed(const Op&, std::span<const Tensor* const>, std::span<const Tensor>) override {}
  };
  static Nobody nobody;
  auto task = []() -> Task<> {
    const NameScope named("inner");
    const InterceptWith seen(&nobody);
    for (int i = 0; i < 3; ++i) {
      co_await yield();
      EXPECT_EQ(NameScope::current(), "outer/inner");
      EXPECT_EQ(task_detail::current_context().interceptor, &nobody);
    }
  };
  std::optional<TaskRun<void>> work;
  {
    const NameScope outer("outer");
    work.emplace(task());
  }
  while (work->step()) {
    EXPECT_EQ(NameScope::current(), "");
    EXPECT_EQ(task_detail::current_context().interceptor, nullptr);
  }
  work->get();
}

TEST(TaskRun, GivesItsResultOnce) {
  auto task = []() -> Task<int> { co_return 1; };
  TaskRun<int> work(task());
  EXPECT_FALSE(work.done());
  EXPECT_EQ(work.get(), 1);
  EXPECT_TRUE(work.done());
  EXPECT_FALSE(work.step());
  EXPECT_THROW(work.get(), FailedPrecondition);
}

TEST(TaskRun, DestroyedWhileSuspendedReleasesItsOwnScopesOnly) {
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  Tensor mine;
  {
    const TidyScope scope;
    ScopeList* const here = scope_here();
    mine = some_tensor();
    {
      auto work = std::make_unique<TaskRun<Tensor>>(both(escaped));
      work->step();
      EXPECT_EQ(num_tensors(), before + 2);
      const TidyScope inner;
      const Tensor inside = some_tensor();
      work.reset();
      EXPECT_FALSE(inside.is_disposed());
    }
    EXPECT_EQ(num_tensors(), before + 1);
    EXPECT_TRUE(escaped.at(0).is_disposed());
    EXPECT_FALSE(mine.is_disposed());
    EXPECT_EQ(scope_here(), here);
  }
  EXPECT_TRUE(mine.is_disposed());
}

TEST(TaskRun, DestroyedOnAnotherThreadTouchesNoScopeThere) {
  std::vector<Tensor> escaped;
  auto work = std::make_unique<TaskRun<Tensor>>(both(escaped));
  work->step();
  std::thread([&] {
    const TidyScope scope;
    ScopeList* const here = scope_here();
    const Tensor theirs = some_tensor();
    work.reset();
    EXPECT_EQ(scope_here(), here);
    EXPECT_FALSE(theirs.is_disposed());
  }).join();
  EXPECT_TRUE(escaped.at(0).is_disposed());
}

TEST(TaskRun, DestroyedWhileSuspendedDoesNotNeedTheScopesOutside) {
  std::vector<Tensor> escaped;
  Tensor handed_on;
  auto child = [&]() -> Task<> {
    TidyScope scope;
    escaped.push_back(some_tensor());
    handed_on = scope.keep(some_tensor());
    co_await yield();
  };
  auto parent = [&]() -> Task<> {
    Task<> outlives = child();  // Goes after the scope in which it is awaited.
    TidyScope scope;
    co_await outlives;
  };
  {
    TaskRun<void> work(parent());
    work.step();
  }
  EXPECT_TRUE(escaped.at(0).is_disposed());
  EXPECT_FALSE(handed_on.is_disposed());
  EXPECT_EQ(handed_on.record()->owner, nullptr);
}

TEST(TaskRun, DestroyedWhileSuspendedLeavesTheLine) {
  std::vector<Tensor> escaped;
  const std::size_t before = num_tensors();
  {
    auto task = [&]() -> Task<> { co_await when_all(both(escaped), both(escaped), both(escaped)); };
    TaskRun<void> work(task());
    work.step();
    work.step();
    EXPECT_EQ(num_tensors(), before + 4);
  }
  escaped.clear();
  EXPECT_EQ(num_tensors(), before);
}

TEST(Run, WaitsForTasksOnOtherThreads) {
  TestThreads threads;
  const std::thread::id here = TestThreads::here();
  const std::size_t before = num_tensors();
  std::vector<Tensor> escaped;
  auto task = [&]() -> Task<Tensor> {
    TidyScope scope;
    const NameScope named("hops");
    escaped.push_back(some_tensor());
    co_await threads.hop();
    const std::thread::id there = TestThreads::here();
    EXPECT_NE(there, here);
    escaped.push_back(some_tensor());
    EXPECT_EQ(escaped[0].record()->owner, escaped[1].record()->owner);
    EXPECT_EQ(NameScope::current(), "hops");
    const Tensor inner = co_await later(escaped);  // Yields: back to the thread of run().
    EXPECT_EQ(TestThreads::here(), here);
    co_await threads.hop();
    EXPECT_NE(TestThreads::here(), here);
    co_return scope.keep(inner);
  };
  TidyScope scope;
  {
    const Tensor result = run(task());
    EXPECT_EQ(num_tensors(), before + 1);
    EXPECT_EQ(result.record()->owner, scope_here());
    for (const Tensor& tensor : escaped) EXPECT_TRUE(tensor.is_disposed());
  }
  EXPECT_EQ(num_tensors(), before);
  auto fails = [&]() -> Task<Tensor> {
    TidyScope own;
    const Tensor lost = some_tensor();
    co_await threads.hop();
    throw InvalidArgument("on another thread");
  };
  EXPECT_THROW(run(fails()), InvalidArgument);
  EXPECT_EQ(num_tensors(), before);
}

TEST(Run, InsideOfATaskKeepsToItsOwnLine) {
  std::vector<Tensor> escaped;
  auto outer = [&]() -> Task<Tensor> {
    TidyScope scope;
    co_await yield();
    const Tensor inner = run(both(escaped));
    EXPECT_EQ(inner.record()->owner, scope_here());
    co_await yield();
    co_return scope.keep(inner);
  };
  const std::size_t before = num_tensors();
  const Tensor result = run(outer());
  EXPECT_EQ(num_tensors(), before + 1);
  EXPECT_EQ(scope_here(), nullptr);
}

TEST(Run, OfManyTasksDoesNotGrow) {
  std::vector<Tensor> escaped;
  const std::size_t before = num_tensors();
  TidyScope scope;
  std::size_t blocks = 0;
  for (int i = 0; i < 100000; ++i) {
    run(later(escaped));
    escaped.clear();
    if (i == 1000) blocks = memory().num_bytes;
  }
  EXPECT_EQ(num_tensors(), before);
  EXPECT_EQ(memory().num_bytes, blocks);
}

}  // namespace
}  // namespace plimsoll
