// Gradients of normalizations, of first, second and third order, against differences of values; what a tape saves.
#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/group_norm.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/rms_norm.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

constexpr double kTolerance = 2e-6;

// Of x, gamma and beta, with and without the last two.
template <class F>
void expect_norm_gradients(const Shape& x, const Shape& row, F norm) {
  const Tensor in = varied(x, -2, 2), gamma = varied(row, 0.5, 1.5, 0.4), beta = varied(row, -1, 1, 0.9);
  const auto all = [&](const Tensors& at) { return norm(at[0], at[1], at[2]); };
  expect_gradients(all, {in, gamma, beta}, true, kTolerance);
  expect_gradients([&](const Tensors& at) { return norm(at[0], at[1], Tensor()); }, {in, gamma}, true, kTolerance);
  expect_gradients([&](const Tensors& at) { return norm(at[0], Tensor(), at[1]); }, {in, beta}, true, kTolerance);
  expect_gradients([&](const Tensors& at) { return norm(at[0], Tensor(), Tensor()); }, {in}, true, kTolerance);
}

TEST(NormalizationGradient, OfLayerNormIsThatOfSmallSteps) {
  expect_norm_gradients(
      {3, 5}, {5}, [](const Tensor& x, const Tensor& gamma, const Tensor& beta) { return layer_norm(x, gamma, beta); });
  expect_norm_gradients({2, 3, 2}, {3, 2}, [](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return layer_norm(x, gamma, beta, {.epsilon = 0.1, .axis = 1});
  });
}

TEST(NormalizationGradient, OfGroupNormIsThatOfSmallSteps) {
  expect_norm_gradients({2, 2, 2, 4}, {4}, [](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return group_norm(x, 2, gamma, beta, {.epsilon = 0.01});
  });
}

TEST(NormalizationGradient, OfRmsNormIsThatOfSmallSteps) {
  const Tensor x = varied({3, 5}, -2, 2), gamma = varied({5}, 0.5, 1.5, 0.4);
  expect_gradients([](const Tensors& at) { return rms_norm(at[0], at[1]); }, {x, gamma}, true, kTolerance);
  expect_gradients([](const Tensors& at) { return rms_norm(at[0], {}, {.epsilon = 0.1, .axis = 0}); }, {x}, true,
                   kTolerance);
}

TEST(NormalizationGradient, OfBatchNormInTrainingIsThatOfSmallSteps) {
  expect_norm_gradients({5, 3}, {3}, [](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return batch_norm_training(x, gamma, beta).y;
  });
  expect_norm_gradients({2, 2, 2, 3}, {3}, [](const Tensor& x, const Tensor& gamma, const Tensor& beta) {
    return batch_norm_training(x, gamma, beta, {.activation = "relu"}).y;
  });
}

TEST(NormalizationGradient, ReachesTheInputThroughTheMomentsOfABatch) {
  expect_gradients([](const Tensors& x) { return batch_norm_training(x[0], {}, {}).mean; }, {varied({5, 3})});
  expect_gradients([](const Tensors& x) { return square(batch_norm_training(x[0], {}, {}).variance); },
                   {varied({5, 3})});
}

TEST(NormalizationGradient, OfBatchNormInInferenceIsThatOfSmallSteps) {
  const Tensors operands = {varied({4, 3}), varied({3}, -1, 1, 0.4), varied({3}, -1, 1, 0.8), varied({3}, -1, 1, 0.2),
                            varied({3}, 0.5, 1.5, 0.1)};
  for (const char* activation : {"linear", "relu"})
    expect_gradients(
        [&](const Tensors& x) {
          return batch_norm_inference(x[0], x[1], x[2], x[3], x[4], {.activation = activation});
        },
        operands);
}

// The gradient of the gradient, as a function of its own.
template <class F>
TensorFunction slope_of(F norm) {
  return [norm](const Tensors& at) {
    GradientTape tape;
    tape.watch(at[0]);
    const Tensor y = norm(at[0]);
    return tape.gradient((y * y * y).sum(), at[0]);
  };
}

TEST(NormalizationGradient, OfThirdOrderIsThatOfSmallSteps) {
  const auto layer = [](const Tensor& x) { return layer_norm(x, {}, {}); };
  const auto batch = [](const Tensor& x) { return batch_norm_training(x, {}, {}).y; };
  const auto group = [](const Tensor& x) { return group_norm(x, 2, {}, {}); };
  expect_gradients(slope_of(layer), {varied({2, 4}, -2, 2)}, true, 1e-5);
  expect_gradients(slope_of(batch), {varied({4, 2}, -2, 2)}, true, 1e-5);
  expect_gradients(slope_of(group), {varied({2, 2, 4}, -2, 2)}, true, 1e-5);
}

TEST(NormalizationGradient, SavesMomentsBesideTheInput) {
  const Tensor x = ones({64, 16, 8}), gamma = ones({8}), beta = zeros({8});
  const std::size_t before = memory().num_bytes;
  const auto bytes_after = [&](auto norm) {
    GradientTape tape;
    tape.watch(x);
    const Tensor sum = norm().sum();
    return memory().num_bytes - before - sizeof(float);
  };
  EXPECT_EQ(bytes_after([&] { return layer_norm(x, gamma, beta); }), 2 * 64 * 16 * sizeof(float));
  EXPECT_EQ(bytes_after([&] { return group_norm(x, 4, gamma, beta); }), 2 * 64 * 4 * sizeof(float));
  EXPECT_EQ(bytes_after([&] { return batch_norm_training(x, gamma, beta).y; }), 2 * 8 * sizeof(float));
}

TEST(NormalizationGradient, OfNothingIsZero) {
  const Tensor x = zeros({0, 4}), gamma = ones({4}), beta = zeros({4});
  const auto of = [&](auto norm) {
    GradientTape tape;
    tape.watch(gamma);
    return tape.gradient(norm().sum(), gamma).template to_vector<float>();
  };
  const std::vector<float> zero(4, 0.f);
  EXPECT_EQ(of([&] { return layer_norm(x, gamma, beta); }), zero);
  EXPECT_EQ(of([&] { return group_norm(x, 2, gamma, beta); }), zero);
  EXPECT_EQ(of([&] { return batch_norm_training(x, gamma, beta).y; }), zero);
}

}  // namespace
}  // namespace plimsoll
