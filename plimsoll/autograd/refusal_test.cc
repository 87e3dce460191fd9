// Every operation, forward and backward, refused at each of its allocations in turn: inputs untouched, nothing leaked,
// and the next try with enough memory succeeds.
#include <gtest/gtest.h>

#include <map>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/ops/cross_entropy.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

// All take a [6, 8] of f64 above zero and one like it.
std::map<std::string, TensorFunction> functions() {
  const Tensor rows = constant({3, 0, 3}), mask = constant({true, false, true, true, false, true});
  const Tensor labels = constant({0, 7, 3, 3, 1, 2});
  return {
      {"add", [](const Tensors& x) { return x[0] + x[1]; }},
      {"number", [](const Tensors& x) { return 2 / x[0] + 1; }},
      {"broadcast", [](const Tensors& x) { return x[0] * x[1].sum({0}); }},
      {"divide", [](const Tensors& x) { return x[0] / x[1]; }},
      {"power", [](const Tensors& x) { return power(x[0], x[1]); }},
      {"tanh", [](const Tensors& x) { return tanh(x[0]); }},
      {"gelu", [](const Tensors& x) { return gelu(x[0]); }},
      {"where", [](const Tensors& x) { return where(x[0] > x[1], x[0], x[1]); }},
      {"cast", [](const Tensors& x) { return x[0].cast(f32).cast(f64); }},
      {"mean", [](const Tensors& x) { return x[0].mean({1}); }},
      {"max", [](const Tensors& x) { return x[0].max({0}); }},
      {"prod", [](const Tensors& x) { return x[0].prod({1}); }},
      {"reshape", [](const Tensors& x) { return x[0].reshape({-1}) * 2; }},
      {"transpose", [](const Tensors& x) { return x[0].transpose(); }},
      {"slice",
       [](const Tensors& x) {
         return x[0].slice({1, 1}, {2, 3});
       }},
      {"concat",
       [](const Tensors& x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"stack",
       [](const Tensors& x) {
         return stack({x[0], x[1]});
       }},
      {"split", [](const Tensors& x) { return split(x[0], 2, 1)[1]; }},
      {"pad",
       [](const Tensors& x) {
         return pad(x[0], {{1, 1}, {0, 2}});
       }},
      {"tile",
       [](const Tensors& x) {
         return tile(x[0], {2, 2});
       }},
      {"gather", [=](const Tensors& x) { return gather(x[0], rows); }},
      {"boolean_mask", [=](const Tensors& x) { return boolean_mask(x[0], mask); }},
      {"matmul", [](const Tensors& x) { return matmul(x[0], x[1], {.transpose_b = true}); }},
      {"softmax", [](const Tensors& x) { return softmax(x[0]); }},
      {"log_softmax", [](const Tensors& x) { return log_softmax(x[0], 0); }},
      {"cross_entropy", [=](const Tensors& x) { return sparse_softmax_cross_entropy_with_logits(labels, x[0]); }},
      {"norm", [](const Tensors& x) { return norm(x[0], 2); }},
      {"top_k", [](const Tensors& x) { return top_k(x[0], 3).values; }},
      {"cumsum", [](const Tensors& x) { return cumsum(x[0], 1); }},
      {"dropout", [](const Tensors& x) { return dropout(x[0], 0.5f, {.seed = 3}); }},
  };
}

TEST(Refusal, ChangesNothingWhereverItComes) {
  const Tensors x = {varied({6, 8}, 0.5, 2), varied({6, 8}, 0.5, 2, 0.8)};
  for (const auto& [name, f] : functions()) expect_refused_anywhere(name, f, x);
}

}  // namespace
}  // namespace plimsoll
