#include "plimsoll/ops/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/norm.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

void expect_near(const Tensor& a, const Tensor& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.shape(), b.shape());
  const auto left = a.cast(f64).to_vector<double>(), right = b.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < left.size(); ++i) ASSERT_NEAR(left[i], right[i], tolerance) << i;
}

struct Operands {
  Tensor x = random_normal({4, 5, 3}, {.seed = 3}) * 2.f + 1.f;
  Tensor gamma = constant({1.f, 2.f, 0.5f}), beta = constant({0.f, -1.f, 3.f});
};

struct Averages {
  Variable mean{zeros({3}), {.trainable = false}}, variance{ones({3}), {.trainable = false}};
};

TEST(BatchNorm, NormalizesByTheBatchInTraining) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const BatchNormResult result = batch_norm_training(x, gamma, beta, {.epsilon = 0.01});
  const Moments exact = moments(x, {0, 1});
  expect_near(result.mean, exact.mean);
  expect_near(result.variance, exact.variance);
  expect_near(result.y, (x - exact.mean) / sqrt(exact.variance + 0.01f) * gamma + beta);
}

TEST(BatchNorm, MovesItsAveragesOnceInTraining) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  const BatchNormResult once = batch_norm_training(x, gamma, beta);
  const Tensor y = batch_norm(x, gamma, beta, averages.mean, averages.variance, {.training = true, .momentum = 0.75});
  EXPECT_EQ(y.to_vector<float>(), once.y.to_vector<float>());
  expect_near(averages.mean.value(), once.mean * 0.25f);
  expect_near(averages.variance.value(), once.variance * 0.25f + 0.75f);
}

TEST(BatchNorm, ReadsItsAveragesOtherwise) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  averages.mean.assign(constant({1.f, 0.f, -1.f}));
  averages.variance.assign(constant({4.f, 1.f, 0.25f}));
  const Tensor y = batch_norm(x, gamma, beta, averages.mean, averages.variance);
  expect_near(y, (x - averages.mean.value()) / sqrt(averages.variance.value() + 1e-3f) * gamma + beta);
  EXPECT_EQ(averages.mean.value().to_vector<float>(), (std::vector<float>{1, 0, -1}));
}

TEST(BatchNorm, FusedReluHasTheBitsOfRelu) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  const auto plain = relu(batch_norm_training(x, gamma, beta).y).to_vector<float>();
  EXPECT_EQ(batch_norm_training(x, gamma, beta, {.activation = "relu"}).y.to_vector<float>(), plain);
  const auto read = relu(batch_norm(x, {}, {}, averages.mean, averages.variance)).to_vector<float>();
  EXPECT_EQ(batch_norm(x, {}, {}, averages.mean, averages.variance, {.activation = "relu"}).to_vector<float>(), read);
}

TEST(BatchNorm, OfAnEmptyBatchLeavesItsAveragesAlone) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  const Tensor y = batch_norm(zeros({0, 3}), gamma, beta, averages.mean, averages.variance, {.training = true});
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  EXPECT_EQ(averages.variance.value().to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(BatchNorm, LeavesItsAveragesAloneWhereverItIsRefused) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  std::size_t need = 0;
  {
    const Budget probe("probe", 1 << 30);
    const BudgetScope use(probe);
    const Averages others;
    const std::size_t before = probe.used();
    batch_norm(x, gamma, beta, others.mean, others.variance, {.training = true});
    need = probe.peak() - before;
  }
  ASSERT_GT(need, 0u);
  for (std::size_t limit = 64; limit < need; limit += 64) {
    const Budget tight("tight", limit);
    const BudgetScope use(tight);
    EXPECT_THROW(batch_norm(x, gamma, beta, averages.mean, averages.variance, {.training = true}), OutOfMemory)
        << limit;
    EXPECT_EQ(averages.mean.value().to_vector<float>(), (std::vector<float>{0, 0, 0})) << limit;
    EXPECT_EQ(averages.variance.value().to_vector<float>(), (std::vector<float>{1, 1, 1})) << limit;
  }
}

TEST(BatchNorm, TakesHalvesBesideFullAverages) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  const Tensor half = x.cast(f16);
  const Tensor y = batch_norm(half, gamma, beta, averages.mean, averages.variance, {.training = true});
  EXPECT_EQ(y.dtype(), f16);
  expect_near(y, batch_norm_training(x, gamma, beta).y, 0.01);
  EXPECT_NE(averages.mean.value().to_vector<float>(), (std::vector<float>{0, 0, 0}));
  expect_near(batch_norm(half, {}, {}, averages.mean, averages.variance),
              batch_norm(x, {}, {}, averages.mean, averages.variance), 0.01);
}

TEST(BatchNorm, IsTheSameWithAnyNumberOfThreads) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Tensor large = random_normal({40, 30, 30, 3}, {.seed = 4});
  const int threads = num_threads();
  const auto values = [&](int count) {
    set_num_threads(count);
    auto all = batch_norm_training(large, gamma, beta).y.to_vector<float>();
    const auto layers = layer_norm(large, {}, {}, {.axis = 1}), groups = group_norm(large, 3, {}, {});
    for (const Tensor& y : {layers, groups})
      for (const float value : y.to_vector<float>()) all.push_back(value);
    return all;
  };
  const auto one = values(1), two = values(2);
  set_num_threads(threads);
  EXPECT_EQ(one, two);
}

TEST(BatchNorm, RefusesWhatDoesNotGoTogetherAndChangesNothing) {
  const Operands given;
  [[maybe_unused]] const Tensor &x = given.x, &gamma = given.gamma, &beta = given.beta;
  const Averages averages;
  const Variable wrong(zeros({4}), {.trainable = false});
  const auto message = [&](const Tensor& in, const Variable& mean, const Variable& variance,
                           const BatchNormOptions& options) {
    return refusal([&] { batch_norm(in, gamma, beta, mean, variance, options); });
  };
  EXPECT_EQ(message(x, averages.mean, wrong, {.training = true}),
            "batch_norm: moving_variance is float32 [4], x float32 [4, 5, 3]; give one of each channel, of x's dtype");
  EXPECT_EQ(message(x, averages.mean, wrong, {}), "batch_norm: variance is [4], x [4, 5, 3]; give it as [3]");
  EXPECT_EQ(message(x, averages.mean, averages.variance, {.training = true, .momentum = 1.5}),
            "batch_norm: the momentum is 1.5; give 0 to 1");
  EXPECT_EQ(message(x, averages.mean, averages.variance, {.epsilon = -1}), "batch_norm: epsilon is -1; give 0 or more");
  EXPECT_NE(message(x, averages.mean, averages.variance, {.activation = "tanh"}).find("\"tanh\""), std::string::npos);
  EXPECT_EQ(refusal([&] { batch_norm_training(x, zeros({2}), beta); }),
            "batch_norm: gamma is [2], x [4, 5, 3]; give it as [3]");
  EXPECT_NE(refusal([&] { batch_norm_training(x.cast(i32), {}, {}); }).find("int32"), std::string::npos);
  const Variable gone(zeros({3}), {.trainable = false});
  gone.dispose();
  EXPECT_THROW(batch_norm(x, {}, {}, averages.mean, gone, {.training = true}), Disposed);
  EXPECT_THROW(batch_norm(Tensor(), {}, {}, averages.mean, averages.variance, {.training = true}), Error);
  EXPECT_EQ(averages.mean.value().to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace plimsoll
