// Layers that become one step: each is compared with the same function run directly and with the pass off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

using T = Tensor;
using Floats = std::vector<float>;

std::size_t count_in(const MemoryPlan& plan, const char* op) {
  return static_cast<std::size_t>(std::count(plan.order.begin(), plan.order.end(), op));
}

// Steps of the callable with the pass; its bits are those of running it directly, with the pass and without.
template <class F, class... Args>
std::size_t steps_of(F callable, const Args&... args) {
  const auto fused = function(callable), plain = function(callable, {.passes = {.fuse_convolution = false}});
  const Floats expected = callable(args...).template to_vector<float>();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fused(args...).template to_vector<float>(), expected);
    EXPECT_EQ(plain(args...).template to_vector<float>(), expected);
  }
  EXPECT_LE(fused.memory_plan(args...).peak_bytes, plain.memory_plan(args...).peak_bytes);
  EXPECT_LT(fused.memory_plan(args...).order.size(), plain.memory_plan(args...).order.size() + 1);
  return fused.memory_plan(args...).order.size();
}

TEST(FuseConvolution, GivesTheBitsOfItsParts) {
  for (const std::int64_t channels : {3, 16}) {
    const T x = random_normal({2, 9, 10, channels}, {.seed = 1}), w = random_normal({3, 3, channels, 8}, {.seed = 2}),
            b = random_normal({8}, {.seed = 3});
    EXPECT_EQ(steps_of([](T x, T w, T b) { return relu(conv2d(x, w) + b); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w, T b) { return b + conv2d(x, w, {.padding = "same"}); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w, T b) { return tanh(conv2d(x, w, {.strides = 2}) + b); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w, T b) { return gelu(conv2d(x, w, {.dilations = 2}) + b); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w, T b) { return sigmoid(conv2d(x, w, {.padding = "same"}) + b); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w, T b) { return relu6(conv2d(x, w) + b); }, x, w, b), 1u);
    EXPECT_EQ(steps_of([](T x, T w) { return relu(conv2d(x, w)); }, x, w), 1u);
    EXPECT_EQ(steps_of([](T x, T w) { return relu6(conv2d(x * 8, w)); }, x, w), 2u);
  }
}

TEST(FuseConvolution, TakesSequencesAndDepthwiseOnes) {
  const T s = random_normal({2, 20, 5}, {.seed = 1}), w = random_normal({3, 5, 8}, {.seed = 2}),
          b = random_normal({8}, {.seed = 3});
  EXPECT_EQ(steps_of([](T x, T w, T b) { return relu(conv1d(x, w, {.padding = "causal"}) + b); }, s, w, b), 1u);
  const T x = random_normal({2, 9, 9, 4}, {.seed = 4}), d = random_normal({3, 3, 4, 2}, {.seed = 5});
  EXPECT_EQ(steps_of([](T x, T w, T b) { return relu6(depthwise_conv2d(x, w) + b); }, x, d, b), 1u);
}

TEST(FuseDense, TakesActivationsWhoseGradientsReadTheirInput) {
  const T x = random_normal({2, 7, 20}, {.seed = 1}), w = random_normal({20, 40}, {.seed = 2}) * 3,
          b = random_normal({40}, {.seed = 3});
  const auto expect_one = [&](auto callable) {
    const auto fused = function(callable), plain = function(callable, {.passes = {.fuse_dense = false}});
    const Floats expected = callable(x, w, b).template to_vector<float>();
    EXPECT_EQ(fused(x, w, b).template to_vector<float>(), expected);
    EXPECT_EQ(plain(x, w, b).template to_vector<float>(), expected);
    EXPECT_EQ(fused.memory_plan(x, w, b).order, std::vector<std::string>{"dense"});
  };
  expect_one([](T x, T w, T b) { return relu6(matmul(x, w) + b); });
  expect_one([](T x, T w, T b) { return gelu(matmul(x, w) + b); });
  expect_one([](T x, T w, T) { return relu(matmul(x, w)); });
  const auto gradient = function([](T x, T w, T b) {  // Which reads what the fused operation would not keep.
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(relu6(matmul(x, w) + b).sum(), {w})[0];
  });
  GradientTape tape;
  tape.watch(w);
  EXPECT_EQ(gradient(x, w, b).to_vector<float>(),
            tape.gradient(relu6(matmul(x, w) + b).sum(), {w})[0].to_vector<float>());
}

TEST(FuseConvolution, LeavesAloneWhatIsNoBiasOrReadTwice) {
  const T x = random_normal({2, 9, 10, 3}, {.seed = 1}), w = random_normal({3, 3, 3, 8}, {.seed = 2}),
          b = random_normal({8}, {.seed = 3});
  EXPECT_EQ(steps_of([](T x, T w, T b) { return relu(conv2d(x, w) * b); }, x, w, b), 3u);
  EXPECT_EQ(steps_of([](T x, T w, T b) { return conv2d(x, w) + b.sum(); }, x, w, b), 3u);
  EXPECT_EQ(steps_of(
                [](T x, T w, T b) {
                  const T y = conv2d(x, w);
                  return relu(y + b) * y;
                },
                x, w, b),
            4u);
  EXPECT_EQ(steps_of([](T x, T w, T b) { return relu(conv2d_transpose(x, w, {}) + b); },
                     random_normal({1, 4, 4, 8}, {.seed = 1}), random_normal({3, 3, 5, 8}, {.seed = 2}),
                     random_normal({5}, {.seed = 3})),
            3u);
}

TEST(FuseConvolution, WorksInATrainingStep) {
  const T x = random_normal({2, 9, 10, 3}, {.seed = 1});
  const Variable w(random_normal({3, 3, 3, 8}, {.seed = 2})), b(random_normal({8}, {.seed = 3}));
  const auto step = [&](T in) {
    GradientTape tape;
    const T y = relu(conv2d(in, w) + b);
    return tape.gradient((y * y).sum(), std::vector<Variable>{w, b});
  };
  const auto fused = function(step), plain = function(step, {.passes = {.fuse_convolution = false}});
  const std::vector<T> expected = step(x), got = fused(x), unfused = plain(x);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>());
    EXPECT_EQ(unfused[i].to_vector<float>(), expected[i].to_vector<float>());
  }
  EXPECT_LT(fused.memory_plan(x).order.size(), plain.memory_plan(x).order.size());
  const auto forward = function([&](T in) { return relu(conv2d(in, w) + b); });  // Under a tape from outside.
  GradientTape tape;
  const T y = forward(x);
  const std::vector<T> outside = tape.gradient((y * y).sum(), std::vector<Variable>{w, b});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(outside[i].to_vector<float>(), expected[i].to_vector<float>());
}

TEST(FuseConvolution, CanBeSwitchedOffInASession) {
  const Graph g;
  T x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 6, 6, 2}, "x");
    y = relu(conv2d(x, random_normal({3, 3, 2, 4}, {.seed = 1})) + constant({1.f, 2.f, 3.f, 4.f}));
  }
  const Feeds feeds{{x, random_normal({2, 6, 6, 2}, {.seed = 2})}};
  Session fused(g), plain(g, {.passes = {.fold = false, .merge = false, .reorder = false, .fuse_convolution = false}});
  EXPECT_EQ(fused.run(y, feeds).to_vector<float>(), plain.run(y, feeds).to_vector<float>());
  EXPECT_EQ(count_in(fused.memory_plan({y}, feeds), "add"), 0u);
  EXPECT_EQ(count_in(plain.memory_plan({y}, feeds), "add"), 1u);
}

// The largest difference between the callable run directly and as a function with these passes.
template <class F>
double difference(F callable, const Passes& passes, const std::vector<T>& args, std::size_t steps) {
  const auto f = function(callable, {.passes = passes});
  const auto off = function(callable);
  const Floats expected = callable(args).template to_vector<float>(), got = f(args).template to_vector<float>();
  EXPECT_EQ(off(args).template to_vector<float>(), expected);
  EXPECT_EQ(f.memory_plan(args).order.size(), steps);
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
  return got.size() == expected.size() ? most : 1e9;
}

TEST(FoldNorm, AgreesToRounding) {
  const auto variance = [](std::int64_t n) { return random_uniform({n}, {.seed = 9}) + 0.5f; };
  const auto vector = [](std::int64_t n, std::uint64_t seed) { return random_normal({n}, {.seed = seed}); };
  const Passes folding{.fold_norm = true};
  const std::vector<T> wide = {random_normal({2, 8, 8, 16}, {.seed = 1}),
                               random_normal({3, 3, 16, 8}, {.seed = 2}),
                               vector(8, 3),
                               vector(8, 4),
                               vector(8, 5),
                               variance(8)};
  const auto normed = [](const char* activation, bool parameters) {
    return [=](const std::vector<T>& in) {
      return batch_norm_inference(conv2d(in[0], in[1], {.padding = "same"}), parameters ? in[2] : T(),
                                  parameters ? in[3] : T(), in[4], in[5], {.activation = activation});
    };
  };
  EXPECT_LT(difference(normed("relu", true), folding, wide, 1), 1e-4);
  EXPECT_LT(difference(normed("linear", true), folding, wide, 1), 1e-4);
  EXPECT_LT(difference(normed("relu", false), folding, wide, 1), 1e-4);
  const std::vector<T> depthwise = {random_normal({2, 8, 8, 4}, {.seed = 1}),
                                    random_normal({3, 3, 4, 2}, {.seed = 2}),
                                    vector(8, 3),
                                    vector(8, 4),
                                    vector(8, 5),
                                    variance(8)};
  EXPECT_LT(difference(
                [](const std::vector<T>& in) {
                  return batch_norm_inference(depthwise_conv2d(in[0], in[1]), in[2], in[3], in[4], in[5]);
                },
                folding, depthwise, 1),
            1e-4);
}

TEST(FuseAttention, AgreesToRounding) {
  const T q = random_normal({2, 3, 20, 16}, {.seed = 1}), k = random_normal({2, 3, 70, 16}, {.seed = 2}),
          v = random_normal({2, 3, 70, 8}, {.seed = 3}), mask = random_normal({2, 1, 1, 70}, {.seed = 4});
  const Passes fusing{.fuse_attention = true};
  const auto mix = [](const T& scores, const T& v) { return matmul(softmax(scores), v); };
  const auto scores = [](const T& q, const T& k) { return matmul(q, k, {.transpose_b = true}); };
  const std::vector<T> in = {q, k, v, mask};
  using In = const std::vector<T>&;
  EXPECT_LT(difference([&](In a) { return mix(scores(a[0], a[1]), a[2]); }, fusing, in, 1), 1e-5);
  EXPECT_LT(difference([&](In a) { return mix(scores(a[0], a[1]) * 0.25f, a[2]); }, fusing, in, 1), 1e-5);
  EXPECT_LT(difference([&](In a) { return mix(scores(a[0], a[1]) / 4.f, a[2]); }, fusing, in, 1), 1e-5);
  EXPECT_LT(difference([&](In a) { return mix(scores(a[0], a[1]) * 0.25f + a[3], a[2]); }, fusing, in, 1), 1e-5);
  EXPECT_LT(difference([&](In a) { return mix(a[3] + scores(a[0], a[1]), a[2]); }, fusing, in, 1), 1e-5);
}

TEST(FuseAttention, LeavesAloneWhatIsSomethingElse) {
  const T q = random_normal({2, 3, 16, 16}, {.seed = 1});
  const std::vector<T> in = {q, random_normal({2, 3, 16, 16}, {.seed = 2}), random_normal({2, 3, 16, 16}, {.seed = 3})};
  const Passes fusing{.fuse_attention = true};
  using In = const std::vector<T>&;
  const auto expect_same = [&](auto callable, std::size_t steps) {
    EXPECT_EQ(difference(callable, fusing, in, steps), 0);
  };
  expect_same([](In a) { return matmul(softmax(matmul(a[0], a[1])), a[2]); }, 3);
  expect_same([](In a) { return matmul(softmax(matmul(a[0], a[1], {.transpose_b = true}), 2), a[2]); }, 3);
  expect_same([](In a) { return matmul(a[2], softmax(matmul(a[0], a[1], {.transpose_b = true}))); }, 3);
  expect_same([](In a) { return matmul(softmax(2.f / matmul(a[0], a[1], {.transpose_b = true})), a[2]); }, 4);
  expect_same(
      [](In a) {
        const T weights = softmax(matmul(a[0], a[1], {.transpose_b = true}));
        return matmul(weights, a[2]) + weights;
      },
      4);
}

TEST(Prune, SwitchedOffGivesTheSame) {
  const auto callable = [](T x) {
    const T unused = tanh(x * 3.f);
    return x + 1.f;
  };
  const T x = random_normal({5}, {.seed = 1});
  const auto pruned = function(callable), whole = function(callable, {.passes = {.prune = false}});
  EXPECT_EQ(pruned(x).to_vector<float>(), callable(x).to_vector<float>());
  EXPECT_EQ(whole(x).to_vector<float>(), callable(x).to_vector<float>());
  EXPECT_EQ(pruned.memory_plan(x).order.size(), 1u);
  EXPECT_EQ(whole.memory_plan(x).order.size(), 3u);
}

TEST(Prune, SwitchedOffLeavesOutWhatIsNotFedAndEffects) {
  const Graph g;
  T x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
    const T other = placeholder(f32, {2}, "other") * 2.f;
    const Variable counter(zeros({}), {.name = "counter"});
    counter.assign_add(ones({}));
    y = x * 2.f;
    tanh(y);
  }
  Session session(g, {.passes = {.prune = false}});
  session.initialize_variables();
  EXPECT_EQ(session.run(y, {{x, ones({2})}}).to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(session.variables()[0].value().item<float>(), 0);
}

}  // namespace
}  // namespace plimsoll
