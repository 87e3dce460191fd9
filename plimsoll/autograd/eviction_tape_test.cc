// Training eagerly in less memory than it would take: same bits, never beyond the budget.
#include <gmock/gmock.h>

#include "plimsoll/autograd/custom_gradient.h"
#include "plimsoll/autograd/eviction_testing.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/tensor/evict/eviction_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

Variable weight(const Shape& shape, std::uint64_t seed) {
  return Variable(random_uniform(shape, {.seed = seed}) * 0.4f - 0.2f);
}

std::shared_ptr<EvictionModel> deep_layers() {
  auto model = std::make_shared<EvictionModel>();
  const Tensor x = random_normal({128, 64}, {.seed = 1}), y = random_normal({128, 64}, {.seed = 2});
  for (std::uint64_t i = 0; i < 10; ++i) model->parameters.push_back(weight({64, 64}, i + 3));
  model->loss = [x, y, model = model.get()] {
    Tensor h = x;
    for (const Variable& w : model->parameters) h = relu(matmul(h, w));
    return mean_squared_error(y, h);
  };
  return model;
}

// Dropout on both sides of whatever is dropped, seeded and not; statistics that may move once only.
std::shared_ptr<EvictionModel> dropout_and_statistics() {
  auto model = std::make_shared<EvictionModel>();
  const Tensor x = random_normal({128, 48}, {.seed = 1}), y = random_normal({128, 48}, {.seed = 2});
  for (std::uint64_t i = 0; i < 6; ++i) {
    model->parameters.push_back(weight({48, 48}, i + 3));
    model->state.emplace_back(zeros({48}), VariableOptions{.trainable = false});
    model->state.emplace_back(ones({48}), VariableOptions{.trainable = false});
  }
  model->loss = [x, y, model = model.get()] {
    Tensor h = x;
    for (std::size_t i = 0; i < 6; ++i) {
      h = batch_norm(matmul(h, model->parameters[i]), {}, {}, model->state[2 * i], model->state[2 * i + 1],
                     {.training = true, .activation = "relu"});
      h = dropout(h, 0.3);
      h = dropout(h, 0.1, {.seed = i});
    }
    return mean_squared_error(y, h);
  };
  return model;
}

std::shared_ptr<EvictionModel> convolutions() {
  auto model = std::make_shared<EvictionModel>();
  const Tensor x = random_normal({4, 16, 16, 8}, {.seed = 1});
  for (std::uint64_t i = 0; i < 5; ++i) model->parameters.push_back(weight({3, 3, 8, 8}, i + 3));
  model->loss = [x, model = model.get()] {
    Tensor h = x;
    for (const Variable& w : model->parameters) h = relu(conv2d(h, w, {.padding = "same"})) + h;
    return max_pool2d(h, 2).mean();
  };
  return model;
}

std::shared_ptr<EvictionModel> attention_and_recurrence() {
  auto model = std::make_shared<EvictionModel>();
  const Tensor x = random_normal({4, 32, 32}, {.seed = 1});
  for (std::uint64_t i = 0; i < 4; ++i) model->parameters.push_back(weight({32, 32}, i + 3));
  model->parameters.push_back(weight({32, 128}, 9));
  model->parameters.push_back(weight({32, 128}, 10));
  model->parameters.push_back(weight({128}, 11));
  model->loss = [x, model = model.get()] {
    const auto& p = model->parameters;
    Tensor h = x;
    for (int i = 0; i < 3; ++i) {  // The same weights each time.
      const Tensor n = layer_norm(h, {}, {});
      const auto heads = [&](const Variable& w) {
        return matmul(n, w).reshape({4, 32, 2, 16}).transpose({0, 2, 1, 3});
      };
      const Tensor a = scaled_dot_product_attention(heads(p[0]), heads(p[1]), heads(p[2]));
      h = h + tanh(matmul(a.transpose({0, 2, 1, 3}).reshape({4, 32, 32}), p[3]));
    }
    return square(lstm(h, p[4], p[5], p[6]).output).mean();
  };
  return model;
}

// A variable that is read, changed and read again within the forward pass.
std::shared_ptr<EvictionModel> changes_underway() {
  auto model = std::make_shared<EvictionModel>();
  const Tensor x = random_normal({96, 64}, {.seed = 1});
  for (std::uint64_t i = 0; i < 6; ++i) model->parameters.push_back(weight({64, 64}, i + 3));
  model->state.emplace_back(ones({96, 64}), VariableOptions{.trainable = false});
  model->loss = [x, model = model.get()] {
    Tensor h = x;
    for (const Variable& w : model->parameters) {
      h = tanh(matmul(h * model->state[0].value(), w));
      model->state[0].assign_add(stop_gradient(h) * 0.01f);
    }
    return square(h).mean();
  };
  return model;
}

struct Case {
  const char* name;
  MakeEvictionModel make;
  double lowest;  // Share of what a step takes beside what is held, that is enough.
};

class EvictionOfSteps : public testing::TestWithParam<Case> {};

TEST_P(EvictionOfSteps, GiveTheSameBitsInEveryBudget) {
  const TrainedBytes natural = train_within(GetParam().make, 1_GiB, false, 2);
  ASSERT_FALSE(natural.refused);
  ASSERT_GT(natural.peak, natural.held);
  const TrainedBytes ample = train_within(GetParam().make, 1_GiB, true, 2);  // Convolutions take less scratch in it.
  EXPECT_LE(ample.peak, natural.peak);
  const std::size_t extent = natural.peak - natural.held;
  std::size_t done = 0;
  for (double share = 1.1; share > 0.05; share -= 0.07) {
    const auto limit = natural.held + static_cast<std::size_t>(share * static_cast<double>(extent));
    const TrainedBytes tight = train_within(GetParam().make, limit, true, 2);
    EXPECT_EQ(memory().dropped_bytes, 0u);
    EXPECT_FALSE(tight.refused && share >= GetParam().lowest) << share;
    if (tight.refused) continue;
    ++done;
    EXPECT_TRUE(same_bytes(tight, natural)) << share;
    EXPECT_EQ(tight.peak == ample.peak, limit >= ample.peak) << share;
  }
  EXPECT_GE(done, 3u);
}

INSTANTIATE_TEST_SUITE_P(Models, EvictionOfSteps,
                         testing::Values(Case{"DeepLayers", deep_layers, 0.5},
                                         Case{"DropoutAndStatistics", dropout_and_statistics, 0.5},
                                         Case{"Convolutions", convolutions, 0.7},
                                         Case{"AttentionAndRecurrence", attention_and_recurrence, 0.8},
                                         Case{"ChangesUnderway", changes_underway, 0.8}),
                         [](const auto& info) { return info.param.name; });

TEST(EvictionOfTapes, GradientsAndTheirResultsAreNotDropped) {
  const Budget budget("ample", 4_MiB, {.evict = true});
  const BudgetScope use(budget);
  const Tensor x = random_normal({64, 64}, {.seed = 1});
  const Variable w(random_normal({64, 64}, {.seed = 2}));
  GradientTape tape;
  const Tensor h = relu(matmul(x, w)), loss = square(h).mean();
  EXPECT_TRUE(drop(h));
  const Tensor gradient = tape.gradient(loss, w);
  EXPECT_FALSE(drop(gradient));
  EXPECT_FALSE(drop(w.value()));
}

TEST(EvictionOfTapes, APersistentTapeAndSecondDerivativesReadWhatWasDropped) {
  const auto run = [](bool evicts) {
    const Budget budget("ample", 4_MiB, {.evict = evicts});
    const BudgetScope use(budget);
    const Tensor x = random_normal({64, 64}, {.seed = 1});
    const auto drop_if = [&](const Tensor& each) { EXPECT_EQ(drop(each), evicts); };
    std::vector<std::vector<float>> all;
    GradientTape outer({.persistent = true});
    outer.watch(x);
    Tensor first;
    {
      GradientTape inner;
      inner.watch(x);
      const Tensor a = tanh(x), b = a * a, c = exp(b * a);
      for (const Tensor* each : {&a, &b, &c}) drop_if(*each);
      first = inner.gradient(c.sum(), x);
    }
    const Tensor d = sin(x), e = d * x;
    for (int i = 0; i < 2; ++i) {
      drop_if(d);
      drop_if(e);
      all.push_back(outer.gradient(first.sum(), x).to_vector<float>());
      all.push_back(outer.gradient((e * d).sum(), x).to_vector<float>());
    }
    return all;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(EvictionOfTapes, ACustomGradientReadsWhatWasDropped) {
  const Budget budget("ample", 4_MiB, {.evict = true});
  const BudgetScope use(budget);
  const Tensor x = ones({64, 64});
  GradientTape tape;
  tape.watch(x);
  const Tensor a = x * 3.f;
  const Tensor y = custom_gradient(
      {a}, [](const std::vector<Tensor>& in) { return square(in[0]); },
      [](const Tensor& g, const std::vector<Tensor>& in) { return std::vector<Tensor>{g * in[0]}; });
  EXPECT_TRUE(drop(a));
  EXPECT_TRUE(drop(y));
  const Tensor gradient = tape.gradient(y.sum(), x);
  EXPECT_EQ(gradient.at<float>({5, 5}), 9.f);
}

TEST(EvictionOfTapes, AFailedStepLeavesTheModelAsItWas) {
  const MakeEvictionModel make = deep_layers;
  const auto model = make();
  std::vector<std::vector<float>> before;
  for (const Variable& each : model->parameters) before.push_back(each.value().to_vector<float>());
  const MemoryInfo held = memory();
  std::size_t refused = 0;
  for (std::size_t limit = 64_KiB; limit < 1_MiB; limit += 24_KiB) {
    const Budget budget("tight", limit, {.evict = true});
    {
      const BudgetScope use(budget);
      try {
        GradientTape tape;
        const Tensor value = model->loss();
        const std::vector<Tensor> gradients = tape.gradient(value, model->parameters);
        EXPECT_EQ(gradients.size(), model->parameters.size());
      } catch (const OutOfMemory&) {
        ++refused;
      }
    }
    EXPECT_LE(budget.peak(), limit);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_EQ(memory().num_data_buffers, held.num_data_buffers);
    EXPECT_EQ(memory().num_bytes, held.num_bytes);
    EXPECT_EQ(memory().dropped_bytes, 0u);
  }
  EXPECT_GT(refused, 2u);
  EXPECT_LT(refused, 20u);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(model->parameters[i].value().to_vector<float>(), before[i]);
}

}  // namespace
}  // namespace plimsoll
