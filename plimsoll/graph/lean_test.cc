// What only gradients read is left out where none is asked for, and is there where one is.
#include <gtest/gtest.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"

namespace plimsoll {
namespace {

struct Case {
  const char* name;
  Tensor x;
  std::vector<Variable> weights;
  std::function<Tensor(const Tensor& x, const std::vector<Variable>& w)> f;
};

Variable weight(const Shape& shape, std::uint64_t seed) {
  return Variable(random_normal(shape, {.seed = seed}) * 0.3f);
}

std::vector<Case> cases() {
  return {
      {"convolution and pooling",
       random_normal({2, 8, 8, 3}, {.seed = 1}),
       {weight({3, 3, 3, 4}, 2), weight({4}, 3)},
       [](const Tensor& x, const auto& w) { return max_pool2d(conv2d_bias_activation(x, w[0], w[1], "relu"), 2); }},
      {"layer norm",
       random_normal({4, 8}, {.seed = 1}),
       {weight({8}, 2), weight({8}, 3)},
       [](const Tensor& x, const auto& w) { return layer_norm(x, w[0], w[1]); }},
      {"a large dense layer",
       random_normal({512, 16}, {.seed = 1}),
       {weight({16, 256}, 2), weight({256}, 3)},
       [](const Tensor& x, const auto& w) { return dense(x, w[0], w[1], Activation::relu); }},
      {"lstm",
       random_normal({2, 5, 3}, {.seed = 1}),
       {weight({3, 16}, 2), weight({4, 16}, 3), weight({16}, 4)},
       [](const Tensor& x, const auto& w) { return lstm(x, w[0], w[1], w[2]).output; }},
  };
}

TEST(Lean, GivesTheSameBitsWithLessMemory) {
  for (const Case& c : cases()) {
    const auto call = [&](Tensor x) { return c.f(x, c.weights); };
    const auto lean = function(call), full = function(call, {.passes = {.lean = false}});
    EXPECT_EQ(lean(c.x).to_vector<float>(), call(c.x).to_vector<float>()) << c.name;
    EXPECT_EQ(full(c.x).to_vector<float>(), call(c.x).to_vector<float>()) << c.name;
    EXPECT_LT(lean.memory_plan(c.x).buffers.size(), full.memory_plan(c.x).buffers.size()) << c.name;
  }
}

TEST(Lean, LeavesGradientsOfFunctionsAlone) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto f = function([&](Tensor x) { return c.f(x, c.weights); });
    f(c.x);
    const auto gradients = [&](auto&& call) {
      GradientTape tape;
      std::vector<std::vector<float>> result;
      for (const Tensor& g : tape.gradient(call(c.x).sum(), c.weights)) result.push_back(g.to_vector<float>());
      return result;
    };
    EXPECT_EQ(gradients(f), gradients([&](const Tensor& x) { return c.f(x, c.weights); }));
  }
}

TEST(Lean, LeavesGradientsOfGraphsAlone) {
  for (const Case& c : cases()) {
    Graph g;
    Tensor x;
    std::vector<Tensor> gradients;
    std::vector<std::int64_t> sizes(c.x.shape().begin(), c.x.shape().end());
    sizes[0] = -1;
    {
      const GraphScope in(g);
      x = placeholder(f32, Shape(sizes), "x");
      gradients = plimsoll::gradients(c.f(x, c.weights).sum(), c.weights);
    }
    Session session(g);
    const std::vector<Tensor> got = session.run(gradients, {{x, c.x}});
    GradientTape tape;
    const std::vector<Tensor> expected = tape.gradient(c.f(c.x, c.weights).sum(), c.weights);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), expected[i].to_vector<float>()) << c.name;
  }
}

}  // namespace
}  // namespace plimsoll
