// Results inside an expression give their memory to the next one; what anybody else can see stays as it is.
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kSize = 1 << 16;
constexpr std::size_t kBytes = kSize * sizeof(float);

std::vector<float> values(const Tensor& x) { return x.to_vector<float>(); }

// What `f` takes at most beside what there is.
template <class F>
std::size_t peak_of(F&& f) {
  const std::size_t before = memory_stats().bytes_in_use;
  reset_memory_stats();
  f();
  return memory_stats().peak_bytes_in_use - before;
}

TEST(TakeOver, AnExpressionTakesOneBuffer) {
  const Tensor a = random_normal({kSize}, {.seed = 1}), b = random_normal({kSize}, {.seed = 2});
  EXPECT_EQ(peak_of([&] { relu((a + b) * 2.f - a / b * 3.f); }), 2 * kBytes);
  EXPECT_EQ(peak_of([&] { tanh(1.f - sigmoid(a + b)); }), kBytes);
  const Tensor sum = a + b, half = sum * 0.5f;
  EXPECT_EQ(values((a + b) * 0.5f), values(half));
  EXPECT_EQ(values(relu(a - b)), values(relu(Tensor(a - b).clone())));
}

TEST(TakeOver, LeavesWhatOthersHold) {
  Tensor a = full({4}, 1.f);
  const Tensor same = a, row = full({1, 4}, 5.f);
  EXPECT_EQ(values(std::move(a) + 1.f), values(full({4}, 2.f)));
  EXPECT_EQ(values(same), values(full({4}, 1.f)));
  Tensor base = full({4}, 1.f);
  const Tensor view = base.reshape({2, 2});
  EXPECT_EQ(values(std::move(base) * 3.f), values(full({4}, 3.f)));
  EXPECT_EQ(values(view), values(full({2, 2}, 1.f)));
  const Variable variable(full({4}, 1.f));
  EXPECT_EQ(values(relu(variable) + row), values(full({1, 4}, 6.f)));
  EXPECT_EQ(values(variable.value()), values(full({4}, 1.f)));
}

TEST(TakeOver, LeavesMemoryOfTheCallers) {
  float mine[4] = {-1, 2, -3, 4};
  EXPECT_EQ(values(relu(wrap(mine, {4}, f32, [](void*) {}))), (std::vector<float>{0, 2, 0, 4}));
  EXPECT_EQ(mine[0], -1);
  Tensor read = full({4}, 1.f);
  const auto pinned = read.data<float>();
  EXPECT_EQ(values(std::move(read) + 1.f), values(full({4}, 2.f)));
  EXPECT_EQ(pinned[0], 1.f);
}

TEST(TakeOver, OfTheLargerOperandOnly) {
  const auto column = [] { return full({4, 1}, 2.f); };
  const auto row = [] { return full({4}, 3.f); };
  EXPECT_EQ(values(column() * row()), values(full({4, 4}, 6.f)));
  EXPECT_EQ(values(full({4, 4}, 1.f) - row()), values(full({4, 4}, -2.f)));
  EXPECT_EQ(values(row() - full({4, 4}, 1.f)), values(full({4, 4}, 2.f)));
  EXPECT_EQ((full({4}, 1.f) == row()).dtype(), boolean);
}

TEST(TakeOver, EmptiesTheHandleItWasGiven) {
  Tensor a = full({4}, 1.f);
  const Tensor b = std::move(a) + 1.f;
  EXPECT_TRUE(a.is_empty_handle());
  Tensor c = full({4}, 1.f);
  EXPECT_THROW(std::move(c) + full({3}, 1.f), InvalidArgument);
}

TEST(TakeOver, KeepsCountsRight) {
  const Tensor a = full({kSize}, 1.f);
  const MemoryInfo before = memory();
  {
    const Tensor y = tidy([&] { return relu(a + a) * 2.f; });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 1);
    EXPECT_EQ(memory().num_data_buffers, before.num_data_buffers + 1);
    EXPECT_EQ(memory().num_bytes, before.num_bytes + kBytes);
  }
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

}  // namespace
}  // namespace plimsoll
