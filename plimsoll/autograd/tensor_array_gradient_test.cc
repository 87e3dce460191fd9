#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/tensor_array.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

TEST(TensorArrayGradient, PassesThroughLoops) {
  expect_gradients(
      [](const Tensors& x) {
        TensorArray states(f64, {.dynamic_size = true});
        Tensor h = x[0];
        for (int t = 0; t < 3; ++t) states.write(t, h = tanh(h * x[1]));
        return states.stack();
      },
      {varied({3}), varied({3}, -1, 1, 0.8)});
}

TEST(TensorArrayGradient, AgreesWithDifferences) {
  const Tensor x = varied({3, 2});
  expect_gradients(
      [](const Tensors& t) {
        TensorArray array(f64, {.size = 3});
        array.unstack(square(t[0]));
        return array.read(2) * array.read(0);
      },
      {x});
  expect_gradients(
      [](const Tensors& t) {
        TensorArray array(f64, {.size = 2, .infer_shape = false});
        return square(array.split(t[0], {2, 1}).concat());
      },
      {x});
  expect_gradients(
      [](const Tensors& t) {
        TensorArray array(f64, {.dynamic_size = true});
        return square(array.scatter({4, 0, 2}, t[0]).gather({4, 1, 4}));
      },
      {x});
}

TEST(TensorArrayRefusal, LeavesTheArrayAsItWas) {
  TensorArray array(f64, {.dynamic_size = true});
  array.write(0, varied({64}));
  const MemoryInfo before = memory();
  {
    const Budget tight("tight", 256);
    const BudgetScope use(tight);
    EXPECT_THROW(array.write(1, varied({64})), OutOfMemory);
    EXPECT_THROW(array.stack(), OutOfMemory);
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(array.size(), 1);
  EXPECT_EQ(array.read(0).to_vector<double>(), varied({64}).to_vector<double>());
}

}  // namespace
}  // namespace plimsoll
