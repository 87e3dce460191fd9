// Convolution, pooling and normalization, forward and backward, refused at each of their allocations in turn: nothing
// has changed, nothing leaked, and the next try with enough memory succeeds.
#include <gtest/gtest.h>

#include <map>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/pooling.h"

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

TEST(NetworkRefusal, ChangesNothingWhereverItComes) {
  const Tensors x = {varied({2, 6, 6, 4}), varied({3, 3, 4, 4}, -1, 1, 0.6), varied({4}, 0.5, 1.5)};
  const Variable mean(zeros({4}, f64), {.trainable = false}), variance(ones({4}, f64), {.trainable = false});
  for (const auto& [name, f] : network_functions(mean, variance)) expect_refused_anywhere(name, f, x);
}

}  // namespace
}  // namespace plimsoll
