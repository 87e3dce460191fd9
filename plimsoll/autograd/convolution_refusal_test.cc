// Convolution, pooling and normalization, forward and backward, refused at each of their allocations in turn: nothing
// has changed, nothing leaked, and the next try with enough memory succeeds.
#include <gtest/gtest.h>

#include <map>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

// All take x [2, 6, 6, 4], a filter [3, 3, 4, 4] and a row [4].
std::map<std::string, TensorFunction> network_functions(const Variable& mean, const Variable& variance) {
  return {
      {"conv2d", [](const Tensors& x) { return conv2d(x[0], x[1], {.strides = 2, .padding = "same"}); }},
      {"conv1d",
       [](const Tensors& x) {
         return conv1d(x[0].reshape({2, 36, 4}), x[1].reshape({9, 4, 4}));
       }},
      {"depthwise", [](const Tensors& x) { return depthwise_conv2d(x[0], x[1]); }},
      {"transpose", [](const Tensors& x) { return conv2d_transpose(x[0], x[1], {.strides = 2}); }},
      {"fused", [](const Tensors& x) { return conv2d_bias_activation(x[0], x[1], x[2], "relu"); }},
      {"max_pool", [](const Tensors& x) { return max_pool2d(x[0], 2); }},
      {"avg_pool", [](const Tensors& x) { return avg_pool2d(x[0], 3, {.padding = "same"}); }},
      {"global", [](const Tensors& x) { return global_avg_pool(x[0]); }},
      {"layer_norm", [](const Tensors& x) { return layer_norm(x[0], x[2], x[2]); }},
      {"group_norm", [](const Tensors& x) { return group_norm(x[0], 2, x[2], x[2]); }},
      {"batch_norm", [=](const Tensors& x) { return batch_norm(x[0], x[2], x[2], mean, variance); }},
      {"batch_norm_training", [](const Tensors& x) { return batch_norm_training(x[0], x[2], x[2]).y; }},
  };
}

void run_with_gradient(const TensorFunction& f, const Tensors& x) {
  GradientTape tape;
  for (const Tensor& source : x) tape.watch(source);
  const Tensor y = f(x);
  const Tensors gradients = tape.gradient(y, x);
}

TEST(NetworkRefusal, ChangesNothingWhereverItComes) {
  const Tensors x = {varied({2, 6, 6, 4}), varied({3, 3, 4, 4}, -1, 1, 0.6), varied({4}, 0.5, 1.5)};
  const Variable mean(zeros({4}, f64), {.trainable = false}), variance(ones({4}, f64), {.trainable = false});
  const auto first = x[0].to_vector<double>();
  for (const auto& [name, f] : network_functions(mean, variance)) {
    std::size_t need = 0;
    {
      const Budget probe("probe", 1 << 30);
      const BudgetScope use(probe);
      run_with_gradient(f, x);
      need = probe.peak();
    }
    ASSERT_GT(need, 0u) << name;
    const MemoryInfo before = memory();
    const std::size_t step = std::max<std::size_t>(64, need / 40 / 64 * 64);
    for (std::size_t limit = 64; limit < need; limit += step) {
      const Budget tight("tight", limit);
      const BudgetScope use(tight);
      EXPECT_THROW(run_with_gradient(f, x), OutOfMemory) << name << " within " << limit << " of " << need;
      EXPECT_EQ(memory().num_tensors, before.num_tensors) << name << " within " << limit;
      EXPECT_EQ(memory().num_bytes, before.num_bytes) << name << " within " << limit;
      EXPECT_EQ(tight.used(), 0u) << name;
    }
    const Budget enough("enough", need);
    const BudgetScope use(enough);
    EXPECT_NO_THROW(run_with_gradient(f, x)) << name << " within " << need;
  }
  EXPECT_EQ(x[0].to_vector<double>(), first);
}

}  // namespace
}  // namespace plimsoll
