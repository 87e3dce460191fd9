#include "plimsoll/ops/cross_entropy.h"

#include <gmock/gmock.h>

#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/refusal_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

Tensor logits() { return constant({{1.f, 2.f, 3.f}, {1000.f, 0.f, -1000.f}}); }
// log(sum(exp(x))) - x of [1, 2, 3] is [2.4076060, 1.4076060, 0.4076060]; of the other row [0, 1000, 2000].

TEST(SoftmaxCrossEntropy, GivesALossForEachRow) {
  const Tensor labels = constant({{0.f, 0.f, 1.f}, {0.25f, 0.75f, 0.f}});
  const Tensor y = softmax_cross_entropy_with_logits(labels, logits());
  EXPECT_EQ(y.shape(), Shape({2}));
  EXPECT_THAT(y.to_vector<float>(), Pointwise(FloatNear(1e-5f), std::vector<float>{0.4076060f, 750.f}));
  const Tensor wide = softmax_cross_entropy_with_logits(labels.cast(f64), logits().cast(f64));
  EXPECT_NEAR(wide.at<double>({0}), 0.407605964444380, 1e-14);
}

TEST(SoftmaxCrossEntropy, TakesRowsThatDoNotSumToOne) {
  const Tensor y = softmax_cross_entropy_with_logits(constant({1.f, 1.f, 0.f}), constant({1.f, 2.f, 3.f}));
  EXPECT_EQ(y.shape(), Shape::scalar());
  EXPECT_NEAR(y.item<float>(), 2.4076060f + 1.4076060f, 1e-6f);
}

TEST(SoftmaxCrossEntropy, ComputesHalvesInFloats) {
  const Tensor labels = constant({{0.f, 0.f, 1.f}, {0.25f, 0.75f, 0.f}});
  for (const DType dtype : {f16, bf16}) {
    const Tensor y = softmax_cross_entropy_with_logits(labels.cast(dtype), logits().cast(dtype));
    EXPECT_EQ(y.dtype(), dtype);
    // Rounded once: the nearest half to each.
    const std::vector<float> expected = constant({0.4076060f, 750.f}).cast(dtype).cast(f32).to_vector<float>();
    EXPECT_EQ(y.cast(f32).to_vector<float>(), expected);
  }
}

TEST(SoftmaxCrossEntropy, WorksBlockByBlock) {
  // More elements than one block has.
  const Tensor x = ones({1500, 100}), labels = full({1500, 100}, 0.01f);
  const std::vector<float> losses = softmax_cross_entropy_with_logits(labels, x).to_vector<float>();
  ASSERT_EQ(losses.size(), 1500u);
  for (const float loss : losses) ASSERT_NEAR(loss, std::log(100.f), 1e-4f);
  const std::vector<float> sparse = sparse_softmax_cross_entropy_with_logits(full({1500}, 99), x).to_vector<float>();
  for (const float loss : sparse) ASSERT_NEAR(loss, std::log(100.f), 1e-4f);
}

TEST(SoftmaxCrossEntropy, RefusesShapesThatDiffer) {
  EXPECT_EQ(
      refusal([] { softmax_cross_entropy_with_logits(zeros({2}), logits()); }),
      "softmax_cross_entropy_with_logits: labels [2] and logits [2, 3] differ; give both one shape, or the numbers "
      "of the classes to the sparse one");
  EXPECT_THROW(softmax_cross_entropy_with_logits(zeros({2, 3}, f64), logits()), InvalidArgument);
  EXPECT_THROW(softmax_cross_entropy_with_logits(constant({1}), constant({1})), InvalidArgument);
  EXPECT_THROW(softmax_cross_entropy_with_logits(constant(1.f), constant(1.f)), InvalidArgument);
}

TEST(SoftmaxCrossEntropy, OfNothingIsNothing) {
  EXPECT_EQ(softmax_cross_entropy_with_logits(zeros({0, 3}), zeros({0, 3})).shape(), Shape({0}));
  EXPECT_EQ(softmax_cross_entropy_with_logits(zeros({2, 0}), zeros({2, 0})).to_vector<float>(),
            std::vector<float>(2, 0.f));
  EXPECT_EQ(sparse_softmax_cross_entropy_with_logits(zeros({0}, i32), zeros({0, 3})).shape(), Shape({0}));
}

TEST(SparseSoftmaxCrossEntropy, TakesTheNumbersOfClasses) {
  for (const DType dtype : {i32, i64}) {
    const Tensor y = sparse_softmax_cross_entropy_with_logits(constant({0, 2}).cast(dtype), logits());
    EXPECT_EQ(y.shape(), Shape({2}));
    EXPECT_THAT(y.to_vector<float>(), Pointwise(FloatNear(1e-6f), std::vector<float>{2.4076060f, 2000.f}));
  }
  const Tensor scalar = sparse_softmax_cross_entropy_with_logits(constant(1), constant({1.0, 2.0, 3.0}));
  EXPECT_EQ(scalar.shape(), Shape::scalar());
  EXPECT_NEAR(scalar.item<double>(), 1.407605964444380, 1e-14);
  const Tensor half = sparse_softmax_cross_entropy_with_logits(constant({0, 2}), logits().cast(f16));
  EXPECT_EQ(half.cast(f32).to_vector<float>(), constant({2.4076060f, 2000.f}).cast(f16).cast(f32).to_vector<float>());
}

TEST(SparseSoftmaxCrossEntropy, NamesTheBadLabel) {
  EXPECT_EQ(refusal([] {
              sparse_softmax_cross_entropy_with_logits(constant({0, 3}), logits());
            }),
            "sparse_softmax_cross_entropy_with_logits: label 3 at position 1 is not one of the 3 classes, which count "
            "from 0");
  EXPECT_EQ(refusal([] {
              sparse_softmax_cross_entropy_with_logits(constant({{0, 1, 2}, {0, 1, -7}}).cast(i64), zeros({2, 3, 5}));
            }),
            "sparse_softmax_cross_entropy_with_logits: label -7 at position [1, 2] is not one of the 5 classes, which "
            "count from 0");
}

TEST(SparseSoftmaxCrossEntropy, RefusesLabelsThatDoNotFit) {
  EXPECT_EQ(refusal([] {
              sparse_softmax_cross_entropy_with_logits(constant({{0, 1}}), logits());
            }),
            "sparse_softmax_cross_entropy_with_logits: labels [1, 2] do not fit logits [2, 3]; give one label for each "
            "row, [2]");
  EXPECT_EQ(
      refusal([] {
        sparse_softmax_cross_entropy_with_logits(constant({0.f, 1.f}), logits());
      }),
      "sparse_softmax_cross_entropy_with_logits: labels [2] are float32; give the numbers of the classes as int32 "
      "or int64");
  EXPECT_THROW(sparse_softmax_cross_entropy_with_logits(constant({0, 1}), zeros({2, 3}, i32)), InvalidArgument);
  EXPECT_THROW(sparse_softmax_cross_entropy_with_logits(constant(0), constant(0.f)), InvalidArgument);
  EXPECT_THROW(sparse_softmax_cross_entropy_with_logits(Tensor(), logits()), Error);
}

TEST(SigmoidCrossEntropy, IsExactFarFromZero) {
  const Tensor x = constant({0.f, 2.f, -2.f, 50.f, -50.f, 1000.f, -1000.f});
  const Tensor z = constant({0.5f, 1.f, 1.f, 1.f, 0.f, 0.f, 1.f});
  const std::vector<float> y = sigmoid_cross_entropy_with_logits(z, x).to_vector<float>();
  const std::vector<double> expected = {
      0.693147180559945, 0.126928011042973, 2.12692801104297, 1.92874984796392e-22, 1.92874984796392e-22, 1000, 1000};
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6 * expected[i]) << i;
}

TEST(SigmoidCrossEntropy, ComputesHalvesInFloats) {
  const Tensor x = constant({2.f, -2.f}), z = constant({1.f, 1.f});
  const Tensor y = sigmoid_cross_entropy_with_logits(z.cast(f16), x.cast(f16));
  EXPECT_EQ(y.cast(f32).to_vector<float>(), constant({0.126928f, 2.126928f}).cast(f16).cast(f32).to_vector<float>());
}

TEST(SigmoidCrossEntropy, WorksBlockByBlock) {
  const Tensor y = sigmoid_cross_entropy_with_logits(ones({70000, 1}), full({70000, 1}, 2.f));
  EXPECT_EQ(y.shape(), Shape({70000, 1}));
  for (const float loss : y.to_vector<float>()) ASSERT_NEAR(loss, 0.126928011f, 1e-6f);
}

TEST(SigmoidCrossEntropy, RefusesWhatDiffers) {
  EXPECT_EQ(refusal([] {
              sigmoid_cross_entropy_with_logits(zeros({8}), zeros({8, 1}));
            }),
            "sigmoid_cross_entropy_with_logits: labels [8] and logits [8, 1] differ; give both one shape");
  EXPECT_THROW(sigmoid_cross_entropy_with_logits(zeros({8}, i32), zeros({8}, i32)), InvalidArgument);
  EXPECT_THROW(sigmoid_cross_entropy_with_logits(zeros({8}), zeros({8}, f64)), InvalidArgument);
  EXPECT_EQ(sigmoid_cross_entropy_with_logits(zeros({0}), zeros({0})).shape(), Shape({0}));
}

TEST(CrossEntropy, LeavesNothingBehindWhenItRefuses) {
  const Tensor labels = constant({0, 9}), x = logits();
  const MemoryInfo before = memory();
  EXPECT_THROW(sparse_softmax_cross_entropy_with_logits(labels, x), InvalidArgument);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

}  // namespace
}  // namespace plimsoll
