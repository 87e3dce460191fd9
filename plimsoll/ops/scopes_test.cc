// Scopes and disposal around operations: what is left after each turn of the loops people write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <thread>

#include "plimsoll/device/device_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class OpScopes : public DeviceFixture {
 protected:
  // Tensors and buffers more after each of five turns than before it; all turns must agree.
  template <class F>
  static std::size_t left_per_turn(F turn) {
    turn();  // The first may set something up.
    std::size_t left = SIZE_MAX;
    for (int i = 0; i < 5; ++i) {
      const MemoryInfo before = memory();
      turn();
      const MemoryInfo after = memory();
      EXPECT_EQ(after.num_tensors - before.num_tensors, after.num_data_buffers - before.num_data_buffers);
      if (left == SIZE_MAX) left = after.num_tensors - before.num_tensors;
      EXPECT_EQ(after.num_tensors - before.num_tensors, left) << "turn " << i;
    }
    return left;
  }
};

Tensor by_mean_and_max(const Tensor& x) { return (x - x.mean()) / x.max(); }
Tensor by_min_and_max(const Tensor& x) {
  const Tensor low = x.min();
  return (x - low) / (x.max() - low);
}
Tensor by_moments(const Tensor& x) {
  const Tensor mean = x.mean();
  return (x - mean) / sqrt(square(x - mean).mean());
}

// In the garbage-collected runtimes these loops leave 1 to 4 tensors each turn. Here a temporary goes with its handle.
TEST_F(OpScopes, LeaveNothingOfTheUsualLoops) {
  const Tensor x = constant({{1.f, 2.f, 3.f, 4.f}});
  EXPECT_EQ(left_per_turn([&] { by_mean_and_max(x).dispose(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { by_min_and_max(x).dispose(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { by_moments(x).dispose(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { by_moments(x); }), 0u);
  EXPECT_EQ(left_per_turn([&] { tidy([&] { return by_moments(x); }).dispose(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { ((x - 3.f) / 2.f).dispose(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { softmax(x).argmax(-1).item<std::int64_t>(); }), 0u);
  EXPECT_EQ(left_per_turn([&] { tidy([&] { softmax(x).argmax(-1).to_vector<std::int64_t>(); }); }), 0u);
  EXPECT_EQ(left_per_turn([&] {
              try {
                tidy([&] {
                  const Tensor y = square(x);
                  throw std::logic_error("stop");
                });
              } catch (const std::logic_error&) {
              }
            }),
            0u);
}

TEST_F(OpScopes, LeaveWhatTheProgramHoldsAndNoMore) {
  const Tensor x = constant({{1.f, 2.f, 3.f, 4.f}});
  std::vector<Tensor> held;
  EXPECT_EQ(left_per_turn([&] { held.push_back(relu(x * 2.f)); }), 1u);
  EXPECT_EQ(left_per_turn([&] { held.push_back(by_moments(x)); }), 1u);
  EXPECT_EQ(left_per_turn([&] { held.push_back(tidy([&] { return by_min_and_max(x); })); }), 1u);
  EXPECT_EQ(left_per_turn([&] { tidy([&] { held.push_back(by_min_and_max(x)); }); }), 0u);
  EXPECT_EQ(left_per_turn([&] { tidy([&] { held.push_back(keep(softmax(x))); }); }), 1u);
  Tensor last;
  EXPECT_EQ(left_per_turn([&] { last = by_mean_and_max(x); }), 0u);
}

TEST_F(OpScopes, LeaveNothingWhenVariablesAreAssigned) {
  const Variable w(ones({4}));
  EXPECT_EQ(left_per_turn([&] { w.assign(w + 1.f); }), 0u);
  EXPECT_EQ(left_per_turn([&] { tidy([&] { w.assign(w + 1.f); }); }), 0u);
  EXPECT_EQ(left_per_turn([&] { w.assign_sub(w.value() * 0.5f); }), 0u);
  EXPECT_FALSE(w.is_disposed());
}

TEST_F(OpScopes, LeaveVariablesAlone) {
  const std::size_t before = memory().num_tensors;
  {
    const Variable made = tidy([] { return Variable(ones({4}) * 2.f); });
    EXPECT_EQ(memory().num_tensors, before + 1) << "Its initial value is gone.";
    EXPECT_EQ(made.value().at<float>({0}), 2.f);
    made.assign(made);  // The value it has.
    EXPECT_EQ(made.value().at<float>({0}), 2.f);
  }
  EXPECT_EQ(memory().num_tensors, before);
}

TEST_F(OpScopes, LeaveASharedBufferWholeWhenAVariableIsDisposedOfTwice) {
  const Tensor x = constant({1.f, 2.f});
  const Variable variable(x);
  EXPECT_EQ(memory().num_data_buffers, 1u);
  variable.dispose();
  variable.dispose();
  EXPECT_EQ(x.at<float>({1}), 2.f);
  EXPECT_EQ(memory().num_tensors, 1u);
  EXPECT_THROW(variable.value(), Disposed);
  EXPECT_THROW(variable.assign(x), Disposed);
}

TEST_F(OpScopes, CountABufferOnceForEveryKindOfTensor) {
  const std::size_t start = memory().num_bytes;
  const Tensor x = zeros({10});
  EXPECT_EQ(memory().num_bytes, start + 40);
  const Tensor flat = x.reshape({2, 5}), again = flat.flatten(), wide = x.expand_dims(), copy = x;
  EXPECT_EQ(memory().num_bytes, start + 40);
  EXPECT_EQ(memory().num_data_buffers, 1u);
  EXPECT_EQ(memory().num_tensors, 4u);
  const Tensor bits = zeros({10}, boolean), halves = zeros({10}, f16), longs = zeros({10}, i64);
  EXPECT_EQ(memory().num_bytes, start + 40 + 10 + 20 + 80);
  x.dispose();
  EXPECT_EQ(again.at<float>({9}), 0.f);
  EXPECT_EQ(memory().num_data_buffers, 4u);
}

TEST_F(OpScopes, RefuseADisposedTensorInEveryOperationAndNameIt) {
  const Tensor x = ones({2, 2}), gone = ones({2, 2});
  gone.dispose();
  const MemoryInfo before = memory();
  EXPECT_THAT([&] { gone + 1.f; },
              ThrowsMessage<Disposed>(AllOf(HasSubstr("add"), HasSubstr("x is disposed"), HasSubstr("[2, 2]"))));
  EXPECT_THAT([&] { x + gone; }, ThrowsMessage<Disposed>(HasSubstr("y is disposed")));
  EXPECT_THAT([&] { square(gone); }, ThrowsMessage<Disposed>(HasSubstr("square")));
  EXPECT_THAT([&] { matmul(x, gone, {.transpose_b = true}); }, ThrowsMessage<Disposed>(HasSubstr("matmul")));
  EXPECT_THROW(gone.reshape({4}), Disposed);
  EXPECT_THROW(gone.sum(), Disposed);
  EXPECT_THROW(gone.cast(i32), Disposed);
  EXPECT_THROW(gone.clone(), Disposed);
  EXPECT_THROW(softmax(gone), Disposed);
  EXPECT_THROW(where(gone, x, x), Disposed);
  EXPECT_THROW(top_k(gone, 1), Disposed);
  EXPECT_THROW(Variable{gone}, Disposed);
  EXPECT_THROW(gone.item<float>(), Disposed);
  EXPECT_THROW(gone.data<float>(), Disposed);
  EXPECT_THROW(gone.device(), Disposed);
  EXPECT_THROW(x + Tensor(), InvalidArgument);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers);
}

TEST_F(OpScopes, OfThreadsAreTheirOwn) {
  const Tensor x = ones({1, 4});
  const LeakCheck check;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) tidy([&] { (x + 1.f) * 2.f; });
    });
  for (std::thread& thread : threads) thread.join();
  check.expect_none();
  EXPECT_EQ(memory().num_tensors, 1u);
}

// Every operation here leaves its result only, of its own buffer or as a view.
TEST_F(OpScopes, LeaveOnlyTheResultOfEachOperation) {
  const Tensor x = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), mask = x > 2.f;
  const std::map<std::string, std::function<Tensor()>> operations = {
      {"add", [&] { return x + 1.f; }},
      {"broadcast",
       [&] {
         return x * constant({1.f, 2.f, 3.f});
       }},
      {"matmul", [&] { return matmul(x, x, {.transpose_b = true}); }},
      {"sum", [&] { return x.sum({1}); }},
      {"mean", [&] { return x.mean({0}, {.keep_dims = true}); }},
      {"argmax", [&] { return x.argmax(); }},
      {"where", [&] { return where(mask, x, x); }},
      {"cast", [&] { return x.cast(f16); }},
      {"clone", [&] { return x.clone(); }},
      {"softmax", [&] { return softmax(x); }},
      {"log_sum_exp", [&] { return log_sum_exp(x, {1}); }},
      {"cumsum", [&] { return cumsum(x); }},
      {"sort", [&] { return sort(x); }},
      {"top_k", [&] { return top_k(x, 2).values; }},
      {"clip", [&] { return clip(x, 2.f, 3.f); }},
      {"broadcast_to",
       [&] {
         return broadcast_to(x, {2, 2, 3});
       }},
      {"logical", [&] { return mask && !mask; }},
  };
  for (const auto& [name, operation] : operations) {
    const MemoryInfo before = memory();
    {
      const Tensor result = operation();
      EXPECT_EQ(memory().num_tensors, before.num_tensors + 1) << name;
      EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 1) << name;
      EXPECT_EQ(memory().num_bytes, before.num_bytes + result.nbytes()) << name;
    }
    EXPECT_EQ(memory().num_bytes, before.num_bytes) << name;
  }
}

}  // namespace
}  // namespace plimsoll
