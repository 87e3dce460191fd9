#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/ragged_tensor.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

TEST(RaggedGradient, AgreesWithDifferences) {
  const Tensor values = varied({5, 2}), splits = constant({0, 2, 2, 5}), padded = varied({3, 2, 2});
  expect_gradients([&](const Tensors& x) { return square(RaggedTensor(x[0], splits).to_padded()); }, {values});
  expect_gradients([&](const Tensors& x) { return square(RaggedTensor(x[0], splits).to_padded({7, 2})); }, {values});
  expect_gradients([&](const Tensors& x) { return square(RaggedTensor(x[0], splits).row(2)); }, {values});
  expect_gradients(
      [&](const Tensors& x) {
        return square(RaggedTensor::from_padded(x[0], constant({1, 0, 2})).values());
      },
      {padded});
  expect_gradients(
      [&](const Tensors& x) {
        return square(RaggedTensor::from_rows({x[0], x[0] * x[0]}).values());
      },
      {values});
}

TEST(RaggedRefusal, ChangesNothing) {
  const Tensor values = varied({5, 2}), lengths = constant({2, 3});
  const auto work = [&] {
    const RaggedTensor r = RaggedTensor::from_row_lengths(values, lengths);
    RaggedTensor::from_padded(r.to_padded(), r.row_lengths());
  };
  const MemoryInfo before = memory();
  std::size_t refusals = 0;
  for (std::size_t limit = 64; limit <= 2048; limit += 64) {
    const Budget tight("tight", limit);
    const BudgetScope use(tight);
    try {
      work();
    } catch (const OutOfMemory&) {
      ++refusals;
    }
    EXPECT_EQ(memory().num_bytes, before.num_bytes);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
  }
  EXPECT_GT(refusals, 0u);
  EXPECT_LT(refusals, 32u);
}

}  // namespace
}  // namespace plimsoll
