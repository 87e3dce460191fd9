#include "plimsoll/ops/variable.h"

#include <gtest/gtest.h>

#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

TEST(Variable, SharesTheBytesOfItsInitialValue) {
  const Tensor initial = ones({4});
  const MemoryInfo before = memory();
  const Variable v(initial, {.name = "kernel"});
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 1);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
  EXPECT_EQ(v.name(), "kernel");
  EXPECT_TRUE(v.trainable());
  EXPECT_FALSE(Variable(constant({1, 2})).trainable());  // Integers have no gradient.
}

TEST(Variable, ChangesWithoutTouchingSnapshots) {
  const Variable v(constant({1.f, 2.f}));
  const Tensor before = v.value();
  v.assign_add(constant({1.f, 1.f}));
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{2, 3}));
  v.assign_sub(constant({2.f, 2.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{0, 1}));
}

TEST(Variable, ChangesInPlaceWhenNobodyElseHasTheBytes) {
  const Variable v(zeros({100}));
  const Tensor change = ones({100});
  const void* where = v.writable_value().bytes();
  v.assign_add(change);
  EXPECT_EQ(v.writable_value().bytes(), where);
  const auto pinned = v.value().data<float>();
  v.assign_add(change);
  EXPECT_NE(v.writable_value().bytes(), where);
  EXPECT_EQ(pinned[0], 1);
}

TEST(Variable, TakesAnAssignedTensorsBytesAndLeavesTheTensorAlone) {
  const Variable v(constant({1.f}));
  const Tensor next = constant({5.f});
  v.assign(next);
  v.assign_add(next);
  EXPECT_EQ(v.value().item<float>(), 10);
  EXPECT_EQ(next.item<float>(), 5);
}

TEST(Variable, CanBeAssignedToItself) {
  const Variable v(constant({7.f}));
  const MemoryInfo before = memory();
  v.assign(v);
  v.assign_add(v);
  EXPECT_EQ(v.value().item<float>(), 14);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(Variable, SurvivesATidyAndItsInitialValueDoesNot) {
  const std::size_t before = memory().num_tensors;
  Tensor initial;
  const Variable v = tidy([&] {
    initial = ones({3});
    return Variable(initial);
  });
  EXPECT_TRUE(initial.is_disposed());
  EXPECT_FALSE(v.is_disposed());
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(memory().num_tensors, before + 1);
}

TEST(Variable, DisposedTwiceLeavesTheOtherOwnerAlone) {
  const Tensor shared = ones({3});
  const Variable v(shared), copy = v;
  v.dispose();
  v.dispose();
  EXPECT_TRUE(copy.is_disposed());
  EXPECT_EQ(shared.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_THROW(v.value(), Disposed);
  EXPECT_THROW(v.assign(shared), Disposed);
  EXPECT_THROW(v.assign_add(shared), Disposed);
}

TEST(Variable, RefusesWhatDoesNotFit) {
  const Variable v(ones({3}), {.name = "kernel"});
  try {
    v.assign(ones({2}));
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "assign: variable \"kernel\" is float32 [3], the value float32 [2]; they must agree");
  }
  EXPECT_THROW(v.assign_sub(ones({3}, f64)), InvalidArgument);
  EXPECT_THROW(v.assign(Tensor()), InvalidArgument);
  EXPECT_THROW(Variable{Tensor()}, InvalidArgument);
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(Variable, StaysAsItWasWhenACopyDoesNotFit) {
  const Budget budget("variables", 64 * 1024);
  const BudgetScope use(budget);
  const Variable v(zeros({10 * 1024}));
  const Tensor snapshot = v.value(), change = ones({1024});
  EXPECT_THROW(v.writable_value(), OutOfMemory);  // The copy would be 40 KiB more.
  EXPECT_EQ(v.value().at<float>({0}), 0);
  EXPECT_EQ(snapshot.at<float>({0}), 0);
}

TEST(Variable, MayBeReadAndAssignedOnSeveralThreads) {
  const Variable v(zeros({64}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const Tensor one = ones({64});
      for (int i = 0; i < 200; ++i) {
        v.assign_add(one);
        const auto values = v.value().to_vector<float>();
        for (const float value : values) EXPECT_EQ(value, values[0]);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(v.value().at<float>({63}), 600);
}

}  // namespace
}  // namespace plimsoll
