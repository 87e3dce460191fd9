// Budgets that evict, used by several threads at once. Also run under the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/evict/eviction_testing.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kSize = 4096;
constexpr std::size_t kBytes = kSize * sizeof(float);

std::vector<float> filled(float value) { return std::vector<float>(static_cast<std::size_t>(kSize), value); }

void run_threads(int count, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(f, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(EvictionThreads, ShareOneBudget) {
  const Budget budget("shared", 24 * kBytes, {.evict = true});
  std::atomic<int> wrong{0};
  run_threads(3, [&](int number) {
    const BudgetScope use(budget);
    const Tensor x = from_vector(filled(static_cast<float>(number)));
    for (int round = 0; round < 20; ++round) {
      std::vector<Tensor> results = {x};
      for (int i = 0; i < 12; ++i) results.push_back(results.back() + 1.f);
      for (std::size_t i = 0; i < results.size(); i += 5) {
        const float expected = static_cast<float>(number) + static_cast<float>(i);
        if (results[i].to_vector<float>() != filled(expected)) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(budget.peak(), budget.limit());
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(memory().dropped_bytes, 0u);
}

// All read the same tensors, from inside the scope and from outside, while some are dropped all the time.
TEST(EvictionThreads, ReadWhatOthersDropAndRecompute) {
  const Budget budget("shared", 64 * kBytes, {.evict = true});
  std::vector<Tensor> results;
  {
    const BudgetScope use(budget);
    results.push_back(from_vector(filled(0)));
    for (int i = 0; i < 16; ++i) results.push_back(results.back() + 1.f);
  }
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  std::thread dropper([&] {
    for (std::size_t i = 0; !done; ++i) drop(results[1 + i % 16]);
  });
  run_threads(3, [&](int number) {
    std::optional<BudgetScope> use;
    if (number > 0) use.emplace(budget);
    for (int round = 0; round < 100; ++round) {
      const std::size_t i = 1 + static_cast<std::size_t>(round * 7 + number) % 16;
      const Tensor doubled = results[i] * 2.f;
      if (doubled.at<float>({5}) != 2 * static_cast<float>(i)) ++wrong;
      if (results[i].data<float>()[7] != static_cast<float>(i)) ++wrong;
    }
  });
  done = true;
  dropper.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(budget.peak(), budget.limit());
}

// The last reference to an operand goes while others recompute what was made of it.
TEST(EvictionThreads, FreeOperandsWhileOthersRecompute) {
  const Budget budget("shared", 256 * kBytes, {.evict = true});
  for (int round = 0; round < 30; ++round) {
    std::vector<Tensor> chain;
    {
      const BudgetScope use(budget);
      chain.push_back(from_vector(filled(1)));
      for (int i = 0; i < 20; ++i) chain.push_back(chain.back() + 1.f);
    }
    for (const Tensor& each : chain) drop(each);
    const Tensor last = chain.back(), middle = chain[10];
    std::thread freeing([&] {
      for (Tensor& each : chain) each = Tensor();
    });
    std::thread reading([&] { EXPECT_EQ(middle.at<float>({0}), 11.f); });
    EXPECT_EQ(last.at<float>({0}), 21.f);
    freeing.join();
    reading.join();
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(EvictionThreads, WriteAVariableWhileOthersReadWhatWasMadeOfIt) {
  const Budget budget("shared", 256 * kBytes, {.evict = true});
  const Variable w(from_vector(filled(0)));
  for (int round = 0; round < 30; ++round) {
    Tensor made, deeper;
    {
      const BudgetScope use(budget);
      made = w.value() + 1.f;
      deeper = made + 1.f;
    }
    drop(made);
    drop(deeper);
    const float before = static_cast<float>(round);
    std::thread writing([&] { w.assign_add(ones({kSize})); });
    EXPECT_EQ(deeper.at<float>({3}), before + 2);
    EXPECT_EQ(made.at<float>({3}), before + 1);
    writing.join();
    EXPECT_EQ(deeper.at<float>({3}), before + 2);
    EXPECT_EQ(w.value().at<float>({3}), before + 1);
  }
}

TEST(EvictionThreads, TheLedgerIsWalkedMeanwhile) {
  const Budget budget("shared", 8 * kBytes, {.evict = true});
  std::atomic<bool> done{false};
  std::thread walking([&] {
    while (!done) EXPECT_GE(live_tensors().size(), 0u);
  });
  {
    const BudgetScope use(budget);
    const Tensor x = from_vector(filled(2));
    for (int round = 0; round < 30; ++round) {
      std::vector<Tensor> results;
      for (int i = 0; i < 12; ++i) results.push_back(x * static_cast<float>(i));
      EXPECT_EQ(results[3].at<float>({1}), 6.f);
    }
  }
  done = true;
  walking.join();
}

// Two budgets, each thread reading what the other has dropped: neither waits for ever.
TEST(EvictionThreads, OfTwoBudgetsReadEachOthersTensors) {
  const Budget budgets[] = {Budget("first", 40 * kBytes, {.evict = true}),
                            Budget("second", 40 * kBytes, {.evict = true})};
  std::vector<Tensor> results[2];
  for (int side = 0; side < 2; ++side) {
    const BudgetScope use(budgets[side]);
    results[side].push_back(from_vector(filled(static_cast<float>(side))));
    for (int i = 0; i < 12; ++i) results[side].push_back(results[side].back() + 1.f);
  }
  std::atomic<int> wrong{0};
  run_threads(2, [&](int side) {
    const BudgetScope use(budgets[side]);
    const std::vector<Tensor>& others = results[1 - side];
    for (int round = 0; round < 60; ++round) {
      const std::size_t i = 1 + static_cast<std::size_t>(round * 5) % 12;
      drop(results[side][i]);
      drop(others[i]);
      const Tensor sum = others[i] + results[side][i];
      if (sum.at<float>({2}) != 1 + 2 * static_cast<float>(i)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace plimsoll
