// A tiny MLP's training step and inference: as a function, in a session, and run one by one; and the cost of tracing.
#include <benchmark/benchmark.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

struct Mlp {
  Variable w1{random_normal({8, 16}, {.seed = 1}), {.name = "w1"}};
  Variable b1{zeros({16}), {.name = "b1"}};
  Variable w2{random_normal({16, 1}, {.seed = 2}), {.name = "w2"}};
  Variable b2{zeros({1}), {.name = "b2"}};
  Tensor x, y;

  explicit Mlp(std::int64_t batch)
      : x(random_normal({batch, 8}, {.seed = 3})), y(random_normal({batch, 1}, {.seed = 4})) {}
  Tensor predict(const Tensor& in) const { return matmul(relu(matmul(in, w1) + b1), w2) + b2; }
  Tensor step(const Tensor& in, const Tensor& wanted) const {
    GradientTape tape;
    const Tensor loss = square(predict(in) - wanted).mean();
    const std::vector<Variable> variables = {w1, b1, w2, b2};
    const std::vector<Tensor> gradients = tape.gradient(loss, variables);
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i].assign_sub(gradients[i] * 0.01f);
    return loss;
  }
};

void BM_TinyMlpStep_eager(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(mlp.step(mlp.x, mlp.y));
  state.counters["peak_bytes"] =
      static_cast<double>(profile([&] { return mlp.step(mlp.x, mlp.y); }).relative_peak_bytes);
}
BENCHMARK(BM_TinyMlpStep_eager)->Arg(1)->Arg(32);

void BM_TinyMlpStep_function(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  const auto f = function([&](Tensor x, Tensor y) { return mlp.step(x, y); });
  f(mlp.x, mlp.y);
  for (auto _ : state) benchmark::DoNotOptimize(f(mlp.x, mlp.y));
  state.counters["peak_bytes"] = static_cast<double>(profile([&] { return f(mlp.x, mlp.y); }).relative_peak_bytes);
  state.counters["planned_bytes"] = static_cast<double>(f.memory_plan(mlp.x, mlp.y).peak_bytes);
  state.counters["bound_bytes"] = static_cast<double>(f.memory_plan(mlp.x, mlp.y).lower_bound_bytes);
}
BENCHMARK(BM_TinyMlpStep_function)->Arg(1)->Arg(32);

void BM_TinyMlpPredict_eager(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(mlp.predict(mlp.x));
}
BENCHMARK(BM_TinyMlpPredict_eager)->Arg(1)->Arg(32);

void BM_TinyMlpPredict_function(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  const auto f = function([&](Tensor x) { return mlp.predict(x); });
  f(mlp.x);
  for (auto _ : state) benchmark::DoNotOptimize(f(mlp.x));
}
BENCHMARK(BM_TinyMlpPredict_function)->Arg(1)->Arg(32);

void BM_TinyMlpPredict_session(benchmark::State& state) {
  const Mlp mlp(state.range(0));
  Graph g;
  Tensor x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 8}, "x");
    y = mlp.predict(x);
  }
  Session session(g);
  const Feeds feeds{{x, mlp.x}};
  for (auto _ : state) benchmark::DoNotOptimize(session.run(y, feeds));
}
BENCHMARK(BM_TinyMlpPredict_session)->Arg(1)->Arg(32);

// Building, planning and running once.
void BM_Trace(benchmark::State& state) {
  const Tensor x = zeros({4});
  for (auto _ : state) {
    const auto f = function([&](Tensor v) {
      for (std::int64_t i = 0; i < state.range(0); ++i) v = tanh(v) + x;
      return v;
    });
    benchmark::DoNotOptimize(f(x));
  }
  state.counters["nodes"] = static_cast<double>(2 * state.range(0));
}
BENCHMARK(BM_Trace)->Arg(500)->Arg(5000)->Arg(50000)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace plimsoll
