// Gradients of matrix products, softmax, losses, norms and orders, against differences.
#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/cross_entropy.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/einsum.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

TEST(MatmulGradient, AgreesWithDifferencesForEveryTransposition) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      SCOPED_TRACE(testing::Message() << transpose_a << transpose_b);
      const Tensor a = varied(transpose_a ? Shape{4, 3} : Shape{3, 4}),
                   b = varied(transpose_b ? Shape{2, 4} : Shape{4, 2});
      const MatmulOptions options{.transpose_a = transpose_a, .transpose_b = transpose_b};
      expect_gradients([&](const Tensors& x) { return matmul(x[0], x[1], options); }, {a, b});
    }
}

TEST(MatmulGradient, SumsOverBroadcastBatches) {
  const auto product = [](const Tensors& x) { return matmul(x[0], x[1]); };
  expect_gradients(product, {varied({2, 1, 2, 3}), varied({2, 3, 2})});
  expect_gradients(product, {varied({2, 3}), varied({2, 3, 2})});
  expect_gradients(product, {varied({2, 2, 3}), varied({3, 2})});
  const auto transposed = [](const Tensors& x) { return matmul(x[0], x[1], {.transpose_b = true}); };
  expect_gradients(transposed, {varied({2, 2, 3}), varied({4, 3})});
  const auto both = [](const Tensors& x) { return matmul(x[0], x[1], {.transpose_a = true, .transpose_b = true}); };
  expect_gradients(both, {varied({2, 3, 2}), varied({4, 3})});
}

TEST(MatmulGradient, ReachesVectors) {
  expect_gradients([](const Tensors& x) { return matmul(x[0], x[1]); }, {varied({2, 3}), varied({3})});
  expect_gradients([](const Tensors& x) { return matmul(x[0], x[1]); }, {varied({2}), varied({2, 3})});
  expect_gradients([](const Tensors& x) { return dot(x[0], x[1]); }, {varied({3}), varied({3}, -1, 1, 0.9)});
  expect_gradients([](const Tensors& x) { return outer(x[0], x[1]); }, {varied({3}), varied({2})});
}

TEST(SoftmaxGradient, AgreesWithDifferencesAlongAnyAxis) {
  for (const int axis : {0, 1, 2}) {
    expect_gradients([&](const Tensors& x) { return softmax(x[0], axis); }, {varied({2, 3, 2})});
    expect_gradients([&](const Tensors& x) { return log_softmax(x[0], axis); }, {varied({2, 3, 2})});
  }
}

TEST(LogSumExpGradient, AgreesWithDifferences) {
  expect_gradients([](const Tensors& x) { return log_sum_exp(x[0]); }, {varied({2, 3})});
  expect_gradients([](const Tensors& x) { return log_sum_exp(x[0], {0, 2}); }, {varied({2, 3, 2})});
}

TEST(CrossEntropyGradient, AgreesWithDifferences) {
  const Tensor labels = varied({2, 3}, 0, 1, 0.9), logits = varied({2, 3});
  expect_gradients([](const Tensors& x) { return softmax_cross_entropy_with_logits(x[0], x[1]); }, {labels, logits});
  expect_gradients([](const Tensors& x) { return sigmoid_cross_entropy_with_logits(x[0], x[1]); }, {labels, logits});
  const Tensor classes = constant({2, 0});
  expect_gradients([&](const Tensors& x) { return sparse_softmax_cross_entropy_with_logits(classes, x[0]); }, {logits});
}

TEST(CrossEntropyGradient, OfHalvesIsThatOfFloatsRoundedOnce) {
  const Tensor logits = varied({2, 3}).cast(f16), labels = varied({2, 3}, 0, 1, 0.9).cast(f16);
  const auto gradient_in = [&](DType dtype) {
    GradientTape tape;
    const Tensor x = logits.cast(dtype);
    tape.watch(x);
    return tape.gradient(softmax_cross_entropy_with_logits(labels.cast(dtype), x).sum(), {x})[0];
  };
  EXPECT_EQ(gradient_in(f16).cast(f32).to_vector<float>(), gradient_in(f32).cast(f16).cast(f32).to_vector<float>());
}

TEST(NormGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3}, 0.2, 1) * constant({{1.0, -1.0, 1.0}});
  expect_gradients([](const Tensors& x) { return norm(x[0]); }, {x});
  expect_gradients([](const Tensors& x) { return norm(x[0], 2, {1}); }, {x});
  expect_gradients([](const Tensors& x) { return norm(x[0], 3, {0}, {.keep_dims = true}); }, {x});
  expect_gradients([](const Tensors& x) { return norm(x[0], 1, {1}); }, {x}, false);
  expect_gradients([](const Tensors& x) { return norm(x[0], "inf"); }, {x}, false);
  expect_gradients([](const Tensors& x) { return moments(x[0], {0}).mean; }, {x}, false);
  expect_gradients([](const Tensors& x) { return moments(x[0], {1}).variance; }, {x});
  expect_gradients([](const Tensors& x) { return l2_normalize(x[0]); }, {x});
}

TEST(NormGradient, IsZeroWhereTheNormIs) {
  for (const double order : {2.0, 3.0}) {
    GradientTape tape;
    const Tensor x = zeros({3});
    tape.watch(x);
    EXPECT_EQ(tape.gradient(norm(x, order), {x})[0].to_vector<float>(), std::vector<float>(3, 0.f)) << order;
  }
}

TEST(OrderGradient, GoesToTheElementsChosen) {
  const Tensor x = varied({3, 4});
  expect_gradients([](const Tensors& x) { return top_k(x[0], 2).values; }, {x}, false);
  expect_gradients([](const Tensors& x) { return square(top_k(x[0], 2).values); }, {x});
  expect_gradients([](const Tensors& x) { return square(sort(x[0], 0)); }, {x});
  expect_gradients([](const Tensors& x) { return square(sort(x[0], 1, {.descending = true})); }, {x});
}

TEST(CumsumGradient, AgreesWithDifferences) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      expect_gradients(
          [&](const Tensors& x) {
            return square(cumsum(x[0], 1, {exclusive, reverse}));
          },
          {varied({2, 4})});
}

TEST(DropoutGradient, DropsTheSameElements) {
  expect_gradients([](const Tensors& x) { return square(dropout(x[0], 0.5, {.seed = 3})); }, {varied({4, 4})});
}

TEST(EinsumGradient, AgreesWithDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        return einsum("bqhd,bkhd->bhqk", {x[0], x[1]});
      },
      {varied({2, 2, 2, 3}), varied({2, 3, 2, 3})});
  expect_gradients(
      [](const Tensors& x) {
        return einsum("abc,ad->dc", {x[0], x[1]});
      },
      {varied({2, 3, 2}), varied({2, 2})});
}

}  // namespace
}  // namespace plimsoll
