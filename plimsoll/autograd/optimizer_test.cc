// Optimizers on variables: what they give, what they keep, and that a step happens or does not.
#include "plimsoll/ops/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/clip.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

const std::map<std::string, OptimizerOptions> kOptimizers = {
    {"sgd", SGDOptions{.learning_rate = 0.1}},
    {"momentum", SGDOptions{.learning_rate = 0.1, .momentum = 0.9}},
    {"nesterov", SGDOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}},
    {"rmsprop", RMSpropOptions{.learning_rate = 0.1}},
    {"rmsprop centered", RMSpropOptions{.learning_rate = 0.1, .momentum = 0.5, .centered = true}},
    {"adagrad", AdagradOptions{.learning_rate = 0.1}},
    {"adadelta", AdadeltaOptions{.learning_rate = 0.1}},
    {"adam", AdamOptions{.learning_rate = 0.1}},
    {"adamw", AdamOptions{.learning_rate = 0.1, .weight_decay = 0.01}},
    {"adamax", AdamaxOptions{.learning_rate = 0.1}},
};

// One number, after Keras' formulas, written plainly.
struct Plain {
  double w, s[3] = {};
  std::int64_t t = 0;

  void step(const SGDOptions& o, double g) {
    if (o.momentum == 0) return void(w -= o.learning_rate * g);
    s[0] = o.momentum * s[0] - o.learning_rate * g;
    w += o.nesterov ? o.momentum * s[0] - o.learning_rate * g : s[0];
  }
  void step(const RMSpropOptions& o, double g) {
    s[0] = o.rho * s[0] + (1 - o.rho) * g * g;
    double below = s[0] + o.epsilon;
    if (o.centered) {
      s[1] = o.rho * s[1] + (1 - o.rho) * g;
      below -= s[1] * s[1];
    }
    const double change = o.learning_rate * g / std::sqrt(below);
    s[2] = o.momentum * s[2] + change;
    w -= o.momentum == 0 ? change : s[2];
  }
  void step(const AdagradOptions& o, double g) {
    if (t == 1) s[0] = o.initial_accumulator_value;
    s[0] += g * g;
    w -= o.learning_rate * g / std::sqrt(s[0] + o.epsilon);
  }
  void step(const AdadeltaOptions& o, double g) {
    s[0] = o.rho * s[0] + (1 - o.rho) * g * g;
    const double d = g * std::sqrt(s[1] + o.epsilon) / std::sqrt(s[0] + o.epsilon);
    s[1] = o.rho * s[1] + (1 - o.rho) * d * d;
    w -= o.learning_rate * d;
  }
  void step(const AdamOptions& o, double g) {
    const double n = static_cast<double>(t);
    w -= o.learning_rate * o.weight_decay * w;
    s[0] = o.beta_1 * s[0] + (1 - o.beta_1) * g;
    s[1] = o.beta_2 * s[1] + (1 - o.beta_2) * g * g;
    w -= o.learning_rate * std::sqrt(1 - std::pow(o.beta_2, n)) / (1 - std::pow(o.beta_1, n)) * s[0] /
         (std::sqrt(s[1]) + o.epsilon);
  }
  void step(const AdamaxOptions& o, double g) {
    s[0] = o.beta_1 * s[0] + (1 - o.beta_1) * g;
    s[1] = std::max(o.beta_2 * s[1], std::abs(g));
    w -= o.learning_rate / (1 - std::pow(o.beta_1, static_cast<double>(t))) * s[0] / (s[1] + o.epsilon);
  }
};

std::vector<Variable> two_variables() {
  return {Variable(varied({5, 3}), {.name = "kernel"}), Variable(varied({7}, -1, 1, 0.9), {.name = "bias"})};
}
Tensors gradients_of_step(int step) {
  return {varied({5, 3}, -1, 1, 0.2 * step), varied({7}, -1, 1, 0.2 * step + 0.1)};
}

TEST(Optimizer, FollowsTheFormulas) {
  for (const auto& [name, options] : kOptimizers) {
    const auto variables = two_variables();
    std::vector<Plain> plain[2];
    for (std::size_t v = 0; v < 2; ++v)
      for (const double w : variables[v].value().to_vector<double>()) plain[v].push_back({.w = w});
    const Optimizer optimizer(options);
    for (int step = 1; step <= 5; ++step) {
      const Tensors gradients = gradients_of_step(step);
      optimizer.apply(variables, gradients);
      for (std::size_t v = 0; v < 2; ++v) {
        const auto g = gradients[v].to_vector<double>(), w = variables[v].value().to_vector<double>();
        for (std::size_t i = 0; i < g.size(); ++i) {
          plain[v][i].t = step;
          std::visit([&](const auto& o) { plain[v][i].step(o, g[i]); }, options);
          EXPECT_NEAR(w[i], plain[v][i].w, 1e-12) << name << " step " << step;
        }
      }
    }
    EXPECT_EQ(optimizer.step(), 5) << name;
  }
}

TEST(Optimizer, KeepsItsStateOutsideOfScopesInItsCategory) {
  const auto variables = two_variables();
  Optimizer adam(AdamOptions{});
  const MemoryInfo before = memory();
  tidy([&] { adam.apply(variables, gradients_of_step(1)); });
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 4);
  EXPECT_EQ(memory().num_bytes, before.num_bytes + 2 * (15 + 7) * 8);
  std::size_t bytes = 0;
  bool named = false;
  for (const LiveTensor& tensor : live_tensors()) {
    if (tensor.category == "optimizer") bytes += tensor.bytes;
    named |= tensor.name == "kernel/m";
  }
  EXPECT_EQ(bytes, 2u * (15 + 7) * 8);
  EXPECT_TRUE(named);
  tidy([&] { adam.apply(variables, gradients_of_step(2)); });
  EXPECT_EQ(memory().num_tensors, before.num_tensors + 4);
  adam = Optimizer(AdamOptions{});
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(Optimizer, LeavesUnconnectedParametersAlone) {
  const auto variables = two_variables();
  const auto before = variables[1].value().to_vector<double>();
  Optimizer(AdamOptions{}).apply(variables, {gradients_of_step(1)[0], Tensor()});
  EXPECT_EQ(variables[1].value().to_vector<double>(), before);
}

TEST(Optimizer, LeavesSnapshotsAlone) {
  const auto variables = two_variables();
  const Tensor snapshot = variables[0].value();
  const auto before = snapshot.to_vector<double>();
  Optimizer(SGDOptions{}).apply(variables, gradients_of_step(1));
  EXPECT_EQ(snapshot.to_vector<double>(), before);
  EXPECT_NE(variables[0].value().to_vector<double>(), before);
}

TEST(Optimizer, TakesParametersInAnyOrder) {
  const auto one = two_variables(), other = two_variables();
  const Optimizer first(AdamOptions{}), second(AdamOptions{});
  for (int step = 1; step <= 3; ++step) {
    const Tensors g = gradients_of_step(step);
    first.apply(one, g);
    if (step == 2)
      second.apply({other[1], other[0]}, {g[1], g[0]});
    else
      second.apply(other, g);
  }
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(one[i].value().to_vector<double>(), other[i].value().to_vector<double>());
}

TEST(Optimizer, GoesOnWhereItsSlotsWereRestored) {
  for (const auto& [name, options] : kOptimizers) {
    const auto one = two_variables(), other = two_variables();
    const Optimizer first(options), second(options);
    for (int step = 1; step <= 3; ++step) first.apply(one, gradients_of_step(step));
    for (std::size_t i = 0; i < 2; ++i) {
      other[i].assign(one[i].value());
      second.restore(other[i], first.slots(one[i]));
    }
    second.restore_step(first.step());
    first.apply(one, gradients_of_step(4));
    second.apply(other, gradients_of_step(4));
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(one[i].value().to_vector<double>(), other[i].value().to_vector<double>()) << name;
  }
}

TEST(Optimizer, GivesTheSameBitsWithTwoThreads) {
  const int before = num_threads();
  for (const auto& [name, options] : kOptimizers) {
    std::vector<float> results[2];
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      const Variable w(varied({70001}).cast(f32));
      const Optimizer optimizer(options);
      for (int step = 1; step <= 2; ++step) optimizer.apply({w}, {varied({70001}, -1, 1, 0.1 * step).cast(f32)});
      results[threads - 1] = w.value().to_vector<float>();
    }
    EXPECT_EQ(results[0], results[1]) << name;
  }
  set_num_threads(before);
}

// Every allocation of a step is refused in turn; then nothing has changed, and the next step is as if nothing had been.
TEST(Optimizer, AStepThatFailsLeavesEverythingAsItWas) {
  for (const auto& [name, options] : kOptimizers)
    for (const int earlier : {0, 2}) {
      const auto variables = two_variables(), expected = two_variables();
      const Optimizer optimizer(options), reference(options);
      for (int step = 1; step <= earlier; ++step) {
        optimizer.apply(variables, gradients_of_step(step));
        reference.apply(expected, gradients_of_step(step));
      }
      const Tensors gradients = gradients_of_step(earlier + 1);
      const Tensor held = variables[0].value(), held_too = variables[1].value();  // So that both must be copied.
      const MemoryInfo before = memory();
      int refusals = 0;
      for (std::size_t limit = 0;; limit += 64) {
        const Budget tight("tight", limit + 1);
        const BudgetScope use(tight);
        try {
          optimizer.apply(variables, gradients);
          break;
        } catch (const OutOfMemory&) {
          ++refusals;
        }
        EXPECT_EQ(optimizer.step(), earlier);
        EXPECT_EQ(variables[0].value().to_vector<double>(), held.to_vector<double>()) << name << " " << limit;
        EXPECT_EQ(variables[1].value().to_vector<double>(), held_too.to_vector<double>()) << name << " " << limit;
        EXPECT_EQ(memory().num_tensors, before.num_tensors) << name;
      }
      EXPECT_GT(refusals, 1) << name;
      reference.apply(expected, gradients);
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_EQ(variables[i].value().to_vector<double>(), expected[i].value().to_vector<double>()) << name;
    }
}

// The same for a whole step: forward, backward and update.
TEST(TrainingStep, RefusedAnywhereLeavesTheModelAsItWas) {
  const Tensor x = varied({6, 5, 3}), y = varied({6, 1}, -1, 1, 0.4);
  const std::vector<Variable> model = {Variable(varied({3, 16})), Variable(varied({4, 16}, -1, 1, 0.2)),
                                       Variable(varied({16}, -1, 1, 0.3)), Variable(varied({4, 1}, -1, 1, 0.4)),
                                       Variable(zeros({1}, f64))};
  const Optimizer adam(AdamOptions{.learning_rate = 0.01});
  const auto step = [&] {
    GradientTape tape;
    const Tensor loss = mean_squared_error(y, dense(lstm(x, model[0], model[1], model[2]).output, model[3], model[4]));
    adam.apply(model, tape.gradient(loss, model));
  };
  const auto values = [&] {
    std::vector<std::vector<double>> all;
    for (const Variable& variable : model) all.push_back(variable.value().to_vector<double>());
    for (const Variable& variable : model)
      for (const Optimizer::Slot& slot : adam.slots(variable)) all.push_back(slot.value.to_vector<double>());
    return all;
  };
  for (int round = 0; round < 2; ++round) {  // With new state and with old.
    const auto before = values();
    const MemoryInfo memory_before = memory();
    int refusals = 0;
    for (std::size_t limit = 64;; limit += 128) {
      const Budget tight("tight", limit);
      const BudgetScope use(tight);
      try {
        step();
        break;
      } catch (const OutOfMemory&) {
        ++refusals;
      }
      ASSERT_EQ(memory().num_bytes, memory_before.num_bytes) << limit;
    }
    EXPECT_GT(refusals, 10);
    EXPECT_EQ(adam.step(), round + 1);
    EXPECT_NE(values(), before);
  }
  const auto before = values();
  {
    const Budget tight("tight", 4096);
    const BudgetScope use(tight);
    EXPECT_THROW(step(), OutOfMemory);
  }
  EXPECT_EQ(values(), before);
}

TEST(Optimizer, RefusesWhatDoesNotFitHavingChangedNothing) {
  const auto variables = two_variables();
  const auto before = variables[0].value().to_vector<double>();
  const Optimizer adam(AdamOptions{});
  const Tensors good = gradients_of_step(1);
  EXPECT_THROW(adam.apply(variables, {good[0]}), InvalidArgument);
  EXPECT_THROW(adam.apply(variables, {good[0], varied({8})}), InvalidArgument);
  EXPECT_THROW(adam.apply(variables, {good[0], good[1].cast(f32)}), InvalidArgument);
  const Tensor gone = good[1] * 1;
  gone.dispose();
  EXPECT_THROW(adam.apply(variables, {good[0], gone}), Disposed);
  EXPECT_THROW(adam.apply({Variable(ones({2}, i32))}, {ones({2}, i32)}), InvalidArgument);
  const Variable dead(ones({2}));
  dead.dispose();
  EXPECT_THROW(adam.apply({dead}, {ones({2})}), Disposed);
  EXPECT_EQ(adam.step(), 0);
  EXPECT_EQ(variables[0].value().to_vector<double>(), before);
  try {
    adam.apply(variables, {good[0], varied({8})});
  } catch (const InvalidArgument& e) {
    EXPECT_STREQ(e.what(), "adam: variable \"bias\" is float64 [7], its gradient float64 [8]; they must agree");
  }
}

TEST(Optimizer, NamesAVariableWithoutAGradientOnceAndRefusesAStepThatChangesNothing) {
  std::string logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged += text; });
  const auto variables = two_variables();
  const Optimizer adam(AdamOptions{});
  for (int i = 0; i < 3; ++i) adam.apply(variables, {ones_like(variables[0].value()), Tensor()});
  set_log_sink(std::move(before));
  const std::size_t first = logged.find("\"bias\" has no gradient");
  EXPECT_NE(first, std::string::npos) << logged;
  EXPECT_EQ(logged.find("\"bias\" has no gradient", first + 1), std::string::npos) << logged;
  EXPECT_THROW(adam.apply(variables, {Tensor(), Tensor()}), FailedPrecondition);
  EXPECT_EQ(adam.step(), 3);
  EXPECT_NO_THROW(adam.apply(std::vector<Variable>(), std::vector<Tensor>()));  // All is frozen.
}

TEST(Optimizer, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Optimizer(AdamOptions{.learning_rate = -1}), InvalidArgument);
  EXPECT_THROW(Optimizer(AdamOptions{.learning_rate = std::nan("")}), InvalidArgument);
  EXPECT_THROW(Optimizer(AdamOptions{.beta_1 = 1}), InvalidArgument);
  EXPECT_THROW(Optimizer(SGDOptions{.momentum = 1.5}), InvalidArgument);
  EXPECT_THROW(Optimizer(RMSpropOptions{.rho = -0.1}), InvalidArgument);
  EXPECT_THROW(Optimizer(AdamaxOptions{.epsilon = -1}), InvalidArgument);
  const Optimizer sgd(SGDOptions{.learning_rate = 0.5});
  EXPECT_THROW(sgd.set_learning_rate(-1), InvalidArgument);
  EXPECT_EQ(sgd.learning_rate(), 0.5);
  sgd.set_learning_rate(0.25);
  EXPECT_EQ(sgd.learning_rate(), 0.25);
}

TEST(Optimizer, RefusesSlotsThatAreNotItsOwn) {
  const auto variables = two_variables();
  const Optimizer adam(AdamOptions{});
  EXPECT_TRUE(adam.slots(variables[0]).empty());
  const Optimizer::Slot wrong_name{"velocity", ones({5, 3}, f64)}, wrong_shape{"m", ones({3, 5}, f64)};
  EXPECT_THROW(adam.restore(variables[0], {&wrong_name, 1}), InvalidArgument);
  EXPECT_THROW(adam.restore(variables[0], {&wrong_shape, 1}), InvalidArgument);
  EXPECT_TRUE(adam.slots(variables[0]).empty());
  EXPECT_THROW(adam.restore_step(-1), InvalidArgument);
}

TEST(OptimizerUpdate, AsAnOpLeavesItsInputsAlone) {
  const Tensor w = varied({4}), g = varied({4}, -1, 1, 0.4), m = zeros({4}, f64), v = zeros({4}, f64);
  const auto before = w.to_vector<double>();
  const Tensor* inputs[] = {&w, &g, &m, &v};
  const Tensors out = execute_all(OptimizerUpdate(AdamOptions{}, 1), inputs);
  const Variable variable(w);
  Optimizer(AdamOptions{}).apply({variable}, {g});
  EXPECT_EQ(out[0].to_vector<double>(), variable.value().to_vector<double>());
  EXPECT_EQ(w.to_vector<double>(), before);
  EXPECT_EQ(m.to_vector<double>(), std::vector<double>(4, 0));
  EXPECT_THROW(execute_all(OptimizerUpdate(SGDOptions{}, 1), inputs), InvalidArgument);
}

TEST(Clip, HoldsValuesAndNorms) {
  const Tensor x = constant({3.0, -4.0});
  EXPECT_EQ(clip_by_value(x, -1, 2).to_vector<double>(), std::vector<double>({2, -1}));
  EXPECT_EQ(clip_by_norm(x, 10).to_vector<double>(), std::vector<double>({3, -4}));
  const auto shorter = clip_by_norm(x, 1).to_vector<double>();
  EXPECT_NEAR(shorter[0], 0.6, 1e-12);
  EXPECT_NEAR(shorter[1], -0.8, 1e-12);
  const auto rows = clip_by_norm(constant({{3.0, -4.0}, {0.1, 0.0}}), 1, {1}).to_vector<double>();
  EXPECT_NEAR(rows[0], 0.6, 1e-12);
  EXPECT_NEAR(rows[2], 0.1, 1e-12);
  EXPECT_EQ(clip_by_norm(zeros({2}), 1).to_vector<float>(), std::vector<float>({0, 0}));
}

TEST(Clip, HoldsTheNormOfAllTogether) {
  const Tensors x = {constant({3.0}), Tensor(), constant({0.0, -4.0})};
  const ClippedTensors clipped = clip_by_global_norm(x, 2.5);
  EXPECT_NEAR(clipped.norm.item<double>(), 5, 1e-12);
  EXPECT_TRUE(clipped.tensors[1].is_empty_handle());
  EXPECT_NEAR(clipped.tensors[0].item<double>(), 1.5, 1e-12);
  EXPECT_NEAR(clipped.tensors[2].to_vector<double>()[1], -2, 1e-12);
  EXPECT_EQ(clip_by_global_norm(x, 5).tensors[0].to_vector<double>(), std::vector<double>({3}));
  const Tensors bad = {constant({1.f, INFINITY}), constant({1.f})};
  EXPECT_TRUE(std::isnan(clip_by_global_norm(bad, 1).tensors[1].item<float>()));
}

TEST(Clip, HasGradients) {
  expect_gradients([](const Tensors& x) { return clip_by_norm(x[0], 1); }, {varied({3, 2})});
  expect_gradients([](const Tensors& x) { return clip_by_norm(x[0], 100, {1}); }, {varied({3, 2})});
  expect_gradients(
      [](const Tensors& x) {
        const ClippedTensors c = clip_by_global_norm(x, 0.7);
        return c.tensors[0].sum() + c.tensors[1] * 2 + c.norm;
      },
      {varied({3, 2}), varied({4}, -1, 1, 0.9)});
  expect_gradients([](const Tensors& x) { return clip_by_value(x[0], -0.5, 0.5); }, {varied({7})}, false);
}

TEST(Clip, RefusesLimitsThatAreNone) {
  EXPECT_THROW(clip_by_value(ones({2}), 1, 0), InvalidArgument);
  EXPECT_THROW(clip_by_norm(ones({2}), 0), InvalidArgument);
  EXPECT_THROW(clip_by_global_norm(Tensors{ones({2})}, INFINITY), InvalidArgument);
  EXPECT_EQ(clip_by_global_norm(Tensors{Tensor()}, 1).norm.item<float>(), 0);  // Nothing is connected.
  EXPECT_TRUE(clip_by_global_norm(Tensors{Tensor()}, 1).tensors[0].is_empty_handle());
  EXPECT_THROW(clip_by_global_norm(Tensors{ones({2}), ones({2}, f64)}, 1), InvalidArgument);
  EXPECT_THROW(global_norm(Tensors{ones({2}, i32)}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
