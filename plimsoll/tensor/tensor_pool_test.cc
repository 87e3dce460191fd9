#include "plimsoll/tensor/tensor_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using namespace std::chrono_literals;
using Lease = TensorPool::Lease;
static_assert(!std::copy_constructible<Lease> && std::movable<Lease>);

std::size_t bytes_in_use() { return memory_stats("CPU:0").bytes_in_use; }

void wait_until(auto&& condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

TEST(TensorPool, TakesEverythingWhenItIsMade) {
  const MemoryInfo before = memory();
  const std::size_t used = bytes_in_use();
  {
    TensorPool pool({.shape = {1, 4}, .dtype = f32, .capacity = 3});
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 3);
    EXPECT_EQ(memory().num_bytes, before.num_bytes + 48);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
    const std::size_t taken = bytes_in_use();
    EXPECT_GT(taken, used);
    for (int i = 0; i < 100; ++i) {
      const Lease lease = pool.acquire();
      EXPECT_EQ(lease.tensor().size(), 4u);
      EXPECT_EQ(memory().num_tensors, before.num_tensors + 1);
    }
    EXPECT_EQ(bytes_in_use(), taken);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 3);
  }
  EXPECT_EQ(bytes_in_use(), used);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST(TensorPool, LendsWhatCanBeWritten) {
  TensorPool pool({.shape = {2, 3}, .dtype = f64, .capacity = 1});
  const Lease lease = pool.acquire();
  const std::span<double> values = lease.data<double>();
  ASSERT_EQ(values.size(), 6u);
  values[4] = 2.5;
  EXPECT_EQ(lease.tensor().at<double>({1, 1}), 2.5);
  EXPECT_EQ(lease.tensor().shape(), (Shape{2, 3}));
  EXPECT_EQ(lease.tensor().record()->op(), std::string("pool"));
  EXPECT_THROW(lease.data<float>(), InvalidArgument);
}

TEST(TensorPool, DisposesOfTheTensorWhenTheLeaseEnds) {
  TensorPool pool({.shape = {4}, .capacity = 1});
  Tensor left_over;
  {
    const Lease lease = pool.acquire();
    left_over = lease.tensor();
    EXPECT_EQ(pool.used(), 1u);
  }
  EXPECT_TRUE(left_over.is_disposed());
  EXPECT_THROW(left_over.to_vector<float>(), Disposed);
  EXPECT_EQ(pool.used(), 0u);
  Lease lease = pool.acquire();
  EXPECT_FALSE(lease.tensor().is_disposed());
  EXPECT_TRUE(left_over.is_disposed());
  lease.tensor().dispose();  // The tensor goes, the lease stays.
  EXPECT_EQ(lease.data<float>().size(), 4u);
  EXPECT_EQ(pool.used(), 1u);
  lease.reset();
  EXPECT_EQ(pool.used(), 0u);
  EXPECT_THROW(lease.tensor(), FailedPrecondition);
  EXPECT_THROW(lease.data<float>(), FailedPrecondition);
}

TEST(TensorPool, LeasesMove) {
  TensorPool pool({.shape = {4}, .capacity = 2});
  Lease a = pool.acquire(), b = pool.acquire();
  const Tensor of_a = a.tensor(), of_b = b.tensor();
  a = std::move(b);
  EXPECT_TRUE(of_a.is_disposed());
  EXPECT_FALSE(of_b.is_disposed());
  EXPECT_EQ(pool.used(), 1u);
  EXPECT_THROW(b.tensor(), FailedPrecondition);  // NOLINT: moved from.
  const Lease c = std::move(a);
  EXPECT_EQ(c.tensor().id(), of_b.id());
  EXPECT_EQ(pool.used(), 1u);
}

TEST(TensorPool, IsLeftAloneByTidy) {
  TensorPool pool({.shape = {4}, .capacity = 1});
  std::optional<Lease> lease;
  tidy([&] { lease = pool.acquire(); });
  EXPECT_FALSE(lease->tensor().is_disposed());
}

TEST(TensorPool, WaitsForViewsOfAnEndedLease) {
  TensorPool pool({.shape = {4}, .capacity = 1});
  Tensor view;
  {
    const Lease lease = pool.acquire();
    lease.data<float>()[1] = 5;
    view = make_view(lease.tensor(), "Reshape", {2, 2}, 0);
  }
  EXPECT_EQ(pool.used(), 1u);
  EXPECT_NE(pool.report().find("1 of 1 tensors used (1 held after their leases)"), std::string::npos) << pool.report();
  EXPECT_FALSE(pool.try_acquire());
  EXPECT_EQ(view.at<float>({0, 1}), 5);
  std::atomic<bool> got = false;
  std::thread waits([&] {
    const Lease lease = pool.acquire();
    got = true;
  });
  wait_until([&] { return pool.report().find("1 waiting") != std::string::npos; });
  EXPECT_FALSE(got);
  view.dispose();
  waits.join();
  EXPECT_EQ(pool.used(), 0u);
}

TEST(TensorPool, TellsAWaitingThreadOfAHeldBuffer) {
  TensorPool pool({.shape = {4}, .capacity = 1});
  std::optional<Lease> lease = pool.acquire();
  Tensor view = make_view(lease->tensor(), "Reshape", {2, 2}, 0);
  std::thread waits([&] { const Lease next = pool.acquire(); });
  wait_until([&] { return pool.report().find("1 waiting") != std::string::npos; });
  lease.reset();  // To nobody yet.
  EXPECT_EQ(pool.used(), 1u);
  view = {};
  waits.join();
}

TEST(TensorPool, ComesBackEmptyHandedInTime) {
  TensorPool pool({.shape = {4}, .capacity = 2});
  std::optional<Lease> a = pool.try_acquire(), b = pool.acquire_for(1h);
  EXPECT_TRUE(a && b);
  EXPECT_FALSE(pool.try_acquire());
  EXPECT_FALSE(pool.acquire_for(5ms));
  EXPECT_FALSE(pool.acquire_for(0ms));
  EXPECT_FALSE(pool.acquire_for(-5ms));
  EXPECT_EQ(pool.peak(), 2u);
  b.reset();
  EXPECT_EQ(pool.used(), 1u);
  EXPECT_TRUE(pool.acquire_for(std::chrono::nanoseconds::max()));
  EXPECT_EQ(pool.peak(), 2u);
  EXPECT_EQ(pool.capacity(), 2u);
}

TEST(TensorPool, ServesInTheOrderOfAsking) {
  TensorPool pool({.shape = {4}, .capacity = 1});
  std::optional<Lease> lease = pool.acquire();
  std::vector<int> order;  // Written by whoever holds the lease.
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const Lease mine = pool.acquire();
      order.push_back(i);
    });
    wait_until([&] { return pool.report().find(std::to_string(i + 1) + " waiting") != std::string::npos; });
  }
  EXPECT_FALSE(pool.try_acquire());
  lease.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(TensorPool, IsSharedByThreads) {
  TensorPool pool({.shape = {16}, .dtype = i32, .capacity = 3});
  std::atomic<int> inside = 0, most = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        std::optional<Lease> lease = i % 7 == 0   ? pool.try_acquire()
                                     : i % 3 == 0 ? pool.acquire_for(std::chrono::microseconds(50))
                                                  : pool.acquire();
        if (!lease) {
          ++refused;
          continue;
        }
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        const std::span<int> values = lease->data<int>();
        std::fill(values.begin(), values.end(), t);
        if (i % 5 == 0) std::this_thread::yield();
        for (const int value : lease->tensor().to_vector<int>()) EXPECT_EQ(value, t);
        --inside;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 3);
  EXPECT_LE(pool.peak(), 3u);
  EXPECT_EQ(pool.used(), 0u);
}

TEST(TensorPool, MayGoBeforeItsLeases) {
  const MemoryInfo before = memory();
  std::optional<Lease> lease;
  {
    TensorPool pool({.shape = {4}, .capacity = 2});
    lease = pool.acquire();
  }
  lease->data<float>()[3] = 4;
  EXPECT_EQ(lease->tensor().at<float>({3}), 4);
  lease.reset();
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(TensorPool, RefusesWhatItCannotHold) {
  EXPECT_THROW(TensorPool({.shape = {4}}), InvalidArgument);
  EXPECT_THROW(TensorPool({.shape = {-1, 4}, .capacity = 1}), InvalidArgument);
  EXPECT_THROW(TensorPool({.shape = {4}, .capacity = 1, .device = "CPU:77"}), NotFound);
  EXPECT_THROW(TensorPool({.shape = {4}, .capacity = 1, .device = "?"}), InvalidArgument);
  EXPECT_THROW(TensorPool({.shape = {Shape::kMostElements}, .dtype = f64, .capacity = 1}), OutOfMemory);
  TensorPool scalars({.dtype = i64, .capacity = 1});
  EXPECT_EQ(scalars.acquire().tensor().size(), 1u);
  TensorPool nothing({.shape = {0, 4}, .capacity = 2});
  EXPECT_EQ(nothing.acquire().data<float>().size(), 0u);
}

TEST(TensorPool, IsChargedToTheBudgetWhenItIsMade) {
  const Budget budget("pool", 64_KiB);
  const std::size_t used = bytes_in_use();
  std::optional<TensorPool> pool;
  {
    const BudgetScope use(budget);
    pool.emplace(TensorPoolOptions{.shape = {1024}, .capacity = 4});
    EXPECT_GE(budget.used(), 16_KiB);
    EXPECT_THROW(TensorPool({.shape = {1024}, .capacity = 100}), OutOfMemory);
  }
  const std::size_t charged = budget.used();
  Lease lease = pool->acquire();
  EXPECT_EQ(budget.used(), charged);
  pool.reset();
  EXPECT_EQ(budget.used(), charged);
  lease.reset();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(bytes_in_use(), used);
}

TEST(TensorPool, IsAHolder) {
  TensorPool pool({.shape = {4}, .capacity = 2});
  const Lease lease = pool.acquire();
  const Tensor tensor = lease.tensor();
  int found = 0;
  Holder::for_each([&](const Holder& holder) {
    holder.visit_held([&](const Storage& storage, const char*) {
      if (&storage == tensor.record()->storage.load()) found += holder.describe() == "pool";
    });
  });
  EXPECT_EQ(found, 1);
}

class TensorPoolDevices : public DeviceFixture {};

TEST_F(TensorPoolDevices, AreChosenByNameOrScope) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 8_MiB}, {.memory_limit = 8_MiB}});
  TensorPool named({.shape = {4}, .capacity = 1, .device = "CPU:1"});
  EXPECT_EQ(named.acquire().tensor().device(), "CPU:1");
  const DeviceScope second("CPU:1");
  TensorPool scoped({.shape = {4}, .capacity = 1});
  EXPECT_EQ(scoped.acquire().tensor().device(), "CPU:1");
  EXPECT_NE(scoped.report().find("CPU:1"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll
