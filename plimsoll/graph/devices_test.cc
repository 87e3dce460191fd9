// Graphs over several logical devices: copies between them, one extent on each.
#include <gmock/gmock.h>

#include <random>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/config.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;
using Floats = std::vector<float>;

class GraphDevices : public testing::Test {
 protected:
  void SetUp() override {
    config::reset_for_testing();
    const auto cpu = config::list_physical_devices("CPU").at(0);
    config::set_logical_device_configuration(
        cpu, {{.memory_limit = 8_MiB}, {.memory_limit = 4_MiB}, {.memory_limit = 4_MiB}});
  }
  void TearDown() override {
    reset_default_graph();
    config::reset_for_testing();
  }
};

TEST_F(GraphDevices, ABudgetBelowThePeakHoldsForAllOfThemTogether) {
  const auto step = [](Tensor x) {
    GradientTape tape;
    tape.watch(x);
    Tensor h = x;
    for (int i = 0; i < 12; ++i) {
      h = softmax(tanh(h) * 2.f);
      if (i % 4 == 1) h = h.to(i % 8 == 1 ? "CPU:1" : "CPU:0");
    }
    return tape.gradient(square(h).sum(), x);
  };
  const Tensor x = random_normal({64, 64}, {.seed = 1});
  const auto natural = function(step);
  const Floats expected = natural(x).to_vector<float>();
  const MemoryPlan plan = natural.memory_plan(x);
  ASSERT_GT(plan.front.size(), 2u);
  for (const BudgetPoint& point : plan.front) {
    const Budget watch("watch", 1 << 24);
    const BudgetScope scope(watch);
    EXPECT_EQ(function(step, {.budget = point.bytes})(x).to_vector<float>(), expected);
    EXPECT_LE(watch.peak(), point.bytes);
  }
  EXPECT_THROW(function(step, {.budget = plan.smallest_bytes - 1})(x), OutOfMemory);
}

TEST_F(GraphDevices, AFunctionMovesValuesBetweenThem) {
  const auto f = function([](Tensor x) { return ((x * 2.f).to("CPU:1") + 1.f).to("CPU:0") + x; });
  const Tensor x = constant({1.f, 2.f});
  for (int i = 0; i < 2; ++i) {
    const Tensor y = f(x);
    EXPECT_EQ(y.to_vector<float>(), (Floats{4, 7}));
    EXPECT_EQ(y.device(), "CPU:0");
  }
  EXPECT_EQ(f(x.to("CPU:0")).to_vector<float>(), (Floats{4, 7}));
}

TEST_F(GraphDevices, GradientsComeBackToWhereTheValueWas) {
  const auto f = function([](Tensor x) { return square(x.to("CPU:1")).sum(); });
  const Tensor x = constant({1.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.gradient(f(x), x);
  EXPECT_EQ(gradient.to_vector<float>(), (Floats{2, 6}));
  EXPECT_EQ(gradient.device(), "CPU:0");
}

TEST_F(GraphDevices, AGraphSaysWhereItsNodesAre) {
  const Graph g;
  Tensor x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
    y = x.to("CPU:1") * 3.f;
  }
  EXPECT_THAT(g.placement(), HasSubstr("x: (placeholder): CPU:0"));
  EXPECT_THAT(g.placement(), HasSubstr("multiply: (multiply): CPU:1"));
  Session session(g);
  EXPECT_EQ(session.run(y, {{x, constant({1.f, 2.f})}}).device(), "CPU:1");
  EXPECT_THROW(y + x, InvalidArgument);
}

TEST_F(GraphDevices, NodesAreOnTheDeviceTheyAreAskedFor) {
  const Graph g;
  Tensor x, y, z;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
    {
      const PlacementScope on("/device:cpu:1");
      const Variable w(constant({3.f, 4.f}), {.name = "w"});
      y = x * w + 1.f;  // x is moved there.
    }
    z = y.to("CPU:0") + x;
  }
  EXPECT_THAT(g.placement(), HasSubstr("w: (variable): CPU:1\n"));
  EXPECT_THAT(g.placement(), HasSubstr("multiply: (multiply): CPU:1\n"));
  EXPECT_THAT(g.placement(), HasSubstr("x: (placeholder): CPU:0\n"));
  EXPECT_THAT(g.placement(), Not(HasSubstr("asked")));
  Session session(g);
  session.initialize_variables();
  EXPECT_EQ(session.run(z, {{x, constant({1.f, 2.f})}}).to_vector<float>(), (Floats{5, 11}));
}

TEST_F(GraphDevices, TheLogTellsOfDevicesThatAreNotThere) {
  const Graph g;
  Tensor x, y;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
    const PlacementScope on("GPU:0");
    y = x * 2.f;
  }
  EXPECT_THAT(g.placement(), HasSubstr("multiply: (multiply): CPU:0 (asked for GPU:0, which does not exist)\n"));
  EXPECT_THAT(g.placement(), HasSubstr("x: (placeholder): CPU:0\n"));
  std::string logged;
  LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged += text; });
  config::set_log_level("debug");
  Session session(g);
  EXPECT_EQ(session.run(y, {{x, constant({1.f, 2.f})}}).to_vector<float>(), (Floats{2, 4}));
  config::set_log_level("warning");
  set_log_sink(std::move(before));
  EXPECT_THAT(logged, HasSubstr("asked for GPU:0"));
}

TEST_F(GraphDevices, HardRequestsThatCannotBeMetNameNodeAndDevices) {
  const Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x");
  {
    const NameScope scope("tower");
    const PlacementScope on("CPU:5", Placement::hard);
    try {
      x * 2.f;
      FAIL() << "not refused";
    } catch (const NotFound& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"tower/multiply\""));
      EXPECT_THAT(error.what(), HasSubstr("CPU:5"));
      EXPECT_THAT(error.what(), HasSubstr("CPU:0, CPU:1, CPU:2"));
    }
  }
  EXPECT_EQ(g.size(), 1u);
  const PlacementScope on("CPU:1", Placement::hard);
  EXPECT_EQ((x * 2.f).device(), "CPU:1");
  EXPECT_THROW(PlacementScope("nowhere"), InvalidArgument);
}

TEST_F(GraphDevices, FunctionsAreAskedWhenTheyAreTraced) {
  const auto f = function([](Tensor x) {
    const PlacementScope on("CPU:1");
    return (x * 2.f + 1.f).to("CPU:0");
  });
  const Tensor x = constant({1.f, 2.f});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(f(x).to_vector<float>(), (Floats{3, 5}));
  const auto soft = function([](Tensor in) {
    const PlacementScope on("GPU:3");
    return in * 2.f;
  });
  EXPECT_EQ(soft(x).device(), "CPU:0");
  const auto hard = function([](Tensor in) {
    const PlacementScope on("GPU:3", Placement::hard);
    return in * 2.f;
  });
  EXPECT_THROW(hard(x), NotFound);
}

TEST_F(GraphDevices, AFunctionThatIsPlannedInsideOfAScopeFusesAsEver) {
  const auto f = function([](Tensor x) { return relu(matmul(x, x) + x.sum({0})); });
  const Tensor x = constant({1.f, -2.f, 3.f, 4.f}).reshape({2, 2});
  const PlacementScope on("CPU:0");
  EXPECT_EQ(f.memory_plan(x).order.size(), 2u);
  EXPECT_EQ(f(x).to_vector<float>(), relu(matmul(x, x) + x.sum({0})).to_vector<float>());
}

TEST_F(GraphDevices, ATapeInsideOfAFunctionSeesMoves) {
  const Variable w(constant({1.f, 2.f}), {.name = "w"});
  const Tensor x = constant({3.f, 5.f}).to("CPU:1");
  const auto gradient = [&](auto&& loss_of) {
    return [&w, loss_of](Tensor in) {
      GradientTape tape;
      const Tensor found = tape.gradient(loss_of(in), w);
      return found.is_empty_handle() ? constant({-1.f}) : found;
    };
  };
  const auto of_value = gradient([&](const Tensor& in) { return (w.value().to("CPU:1") * in).sum(); });
  const auto of_read = gradient([&](const Tensor& in) { return (Tensor(w).to("CPU:1") * in).sum(); });
  const auto back = gradient([&](const Tensor& in) { return (Tensor(w) * in.to("CPU:0")).to("CPU:1").sum(); });
  const auto placed = gradient([&](const Tensor& in) {
    const PlacementScope on("CPU:2");
    return (w * in * in).sum();
  });
  EXPECT_EQ(function(of_value)(x).to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(function(of_read)(x).to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(function(back)(x).to_vector<float>(), (Floats{3, 5}));
  EXPECT_EQ(function(placed)(x).to_vector<float>(), (Floats{9, 25}));
  EXPECT_EQ(function(placed)(x).device(), "CPU:0");
}

TEST_F(GraphDevices, GradientsOfOutputsThatNobodyReadsAreWhereTheOthersAre) {
  const Tensor x = constant({1.f, 2.f, 3.f, 4.f}).to("CPU:1");
  const auto loss = [](const Tensor& in) { return square(split(in, 2, 0)[1]).sum(); };
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(loss(x), x).to_vector<float>(), (Floats{0, 0, 6, 8}));
  const auto inside = function([&](Tensor in) {
    GradientTape inner;
    inner.watch(in);
    return inner.gradient(loss(in), in);
  });
  EXPECT_EQ(inside(x).to_vector<float>(), (Floats{0, 0, 6, 8}));
}

TEST_F(GraphDevices, BranchesAndLoopsRunWhereTheirStateIs) {
  const auto f = function([](Tensor x) {
    const Tensor doubled = while_loop([](const Tensor& s) { return s.sum() < 100.f; },
                                      [](const Tensor& s) { return (s.to("CPU:2") * 2.f).to("CPU:1"); }, x);
    return cond(
        doubled.sum() > 0.f, [&] { return doubled + 1.f; }, [&] { return doubled; });
  });
  const Tensor x = constant({1.f, 3.f}).to("CPU:1");
  const Tensor y = f(x);
  EXPECT_EQ(y.to_vector<float>(), (Floats{33, 97}));
  EXPECT_EQ(y.device(), "CPU:1");
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.gradient(f(x).sum(), x);
  EXPECT_EQ(gradient.to_vector<float>(), (Floats{32, 32}));
  EXPECT_EQ(gradient.device(), "CPU:1");
  const auto away = function([](Tensor in) {
    return cond(
        in.sum() > 0.f, [&] { return (in + 1.f).to("CPU:2"); }, [&] { return in; });
  });
  EXPECT_THROW(away(x), InvalidArgument);
}

// Two towers on two devices, the loss on a third.
struct Towers {
  Graph graph;
  Tensor x, y, loss, train;
  explicit Towers(bool placed) {
    const auto on = [&](int device) { return placed ? "CPU:" + std::to_string(device) : std::string("CPU:0"); };
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 4}, "x");
    y = placeholder(f32, {-1, 1}, "y");
    std::vector<Tensor> towers;
    for (int i = 1; i <= 2; ++i) {
      const NameScope name("tower" + std::to_string(i));
      const PlacementScope there(on(i));
      const Variable w(full({4, 1}, 0.1f * static_cast<float>(i)), {.name = "w"});
      towers.push_back(matmul(x, w));
    }
    const PlacementScope there(on(0));
    loss = square(towers[0] + towers[1] - y).mean();
    train = train::AdamOptimizer(0.05).minimize(loss);
  }
  Floats run() {
    Session session(graph);
    session.initialize_variables();
    const Tensor xs = arange(0, 32).cast(f32).reshape({8, 4}) / 32.f, ys = xs.sum({1}, {.keep_dims = true});
    Floats losses;
    for (int i = 0; i < 100; ++i) {
      losses.push_back(session.run(loss, {{x, xs}, {y, ys}}).item<float>());
      session.run({train}, {{x, xs}, {y, ys}});
    }
    for (const Variable& variable : session.variables())
      for (const float value : variable.value().cast(f32).to_vector<float>()) losses.push_back(value);
    return losses;
  }
};

TEST_F(GraphDevices, TowersOnSeveralDevicesAreTrainedWhereTheyAre) {
  Towers placed(true), together(false);
  EXPECT_THAT(placed.graph.placement(), HasSubstr("tower1/w/Adam/m: (variable): CPU:1\n"));
  EXPECT_THAT(placed.graph.placement(), HasSubstr("tower2/w/Adam/update: (adam): CPU:2\n"));
  const Floats losses = placed.run();
  EXPECT_EQ(losses, together.run());
  EXPECT_LT(losses[99], losses[0] / 10);
}

TEST_F(GraphDevices, BuildingThatFailsLeavesTheGraphAsItWas) {
  const Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x");
  const Variable w(constant({1.f, 2.f}), {.name = "w"});
  const Variable half(zeros({2}, f16), {.name = "half"});
  const Tensor loss = (w * x).sum() + (half.value().cast(f32) * x).sum();
  const std::string before = g.placement();
  const std::size_t size = g.size();
  EXPECT_THROW(train::AdamOptimizer(0.1).minimize(loss), InvalidArgument);  // Of half.
  EXPECT_THROW(x + ones({3}), InvalidArgument);                             // A constant was there already.
  EXPECT_THROW(w.assign(constant({1.f, 2.f}).to("CPU:1")), InvalidArgument);
  EXPECT_THROW(cond(
                   x.sum() > 0.f,
                   [&] {
                     return x * constant({4.f, 5.f});
                   },
                   [&] { return x.sum(); }),
               InvalidArgument);
  // What the arguments of the calls above made is there, and nothing of what failed.
  EXPECT_THAT(g.placement(), HasSubstr(before));
  EXPECT_THAT(g.placement(), Not(HasSubstr("Adam")));
  EXPECT_THAT(g.placement(), Not(HasSubstr("gradients")));
  EXPECT_THAT(g.placement(), Not(HasSubstr("cond")));
  EXPECT_GE(g.size(), size);
  const std::vector<Variable> only = {w};
  train::AdamOptimizer(0.1).minimize(loss, only);
  EXPECT_THAT(g.placement(), HasSubstr("gradients: (gradients)"));
  EXPECT_THAT(g.placement(), HasSubstr("Adam/step: (variable)"));
}

// A random program over three variables, with random moves between the devices or none.
class RandomProgram {
 public:
  RandomProgram(std::uint32_t seed, bool moves) : seed_(seed), moves_(moves) {}

  std::string device(std::mt19937& random) const {
    const auto drawn = random() % 3;
    return moves_ ? "CPU:" + std::to_string(drawn) : "CPU:0";
  }
  std::vector<Variable> variables() const {
    std::mt19937 random(seed_);
    std::vector<Variable> result;
    for (int i = 0; i < 3; ++i) {
      const Tensor value = random_normal({4, 4}, {.seed = seed_ * 3 + static_cast<std::uint64_t>(i)});
      result.emplace_back(value.to(device(random)), VariableOptions{.name = "w" + std::to_string(i)});
    }
    return result;
  }
  Tensor loss(const std::vector<Tensor>& leaves) const {
    std::mt19937 random(seed_ + 1000);
    std::vector<Tensor> values = leaves;
    for (int i = 0; i < 12; ++i) {
      const std::string there = device(random);
      const std::size_t first = random() % values.size(),
                        second = (first + 1 + random() % (values.size() - 1)) % values.size();
      const Tensor a = values[first].to(there), b = values[second].to(there);
      switch (random() % 6) {
        case 0:
          values.push_back(a + b);
          break;
        case 1:
          values.push_back(a * b);
          break;
        case 2:
          values.push_back(tanh(matmul(a, b)));
          break;
        case 3:
          values.push_back(split(concat({a, b}, 0), 2, 0)[1]);
          break;
        case 4:
          values.push_back(relu(a) - b.mean({1}, {.keep_dims = true}));
          break;
        default:
          values.push_back(softmax(a) * 2.f);
      }
    }
    Tensor sum = values.back().mean().to("CPU:0");
    for (std::size_t i = 0; i + 1 < values.size(); ++i) sum = sum + (values[i] * 0.1f).sum().to("CPU:0");
    return sum;
  }

 private:
  std::uint32_t seed_;
  bool moves_;
};

std::vector<Floats> values_of(const std::vector<Tensor>& tensors) {
  std::vector<Floats> result;
  for (const Tensor& tensor : tensors)
    result.push_back(tensor.is_empty_handle() ? Floats{} : tensor.to_vector<float>());
  return result;
}

TEST_F(GraphDevices, RandomMovesChangeNoBitsOfGradients) {
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    const auto eagerly = [&](const RandomProgram& program) {
      const std::vector<Variable> w = program.variables();
      GradientTape tape;
      const Tensor loss = program.loss({w.begin(), w.end()});
      return values_of(tape.gradient(loss, w));
    };
    const RandomProgram still(seed, false), moving(seed, true);
    const std::vector<Floats> expected = eagerly(still);
    EXPECT_EQ(eagerly(moving), expected);
    {
      const std::vector<Variable> w = moving.variables();
      const auto inside = function([&](Tensor) {
        GradientTape tape;
        const Tensor loss = moving.loss({w.begin(), w.end()});
        std::vector<Tensor> gradients = tape.gradient(loss, w);
        for (std::size_t i = 0; i < w.size(); ++i)
          EXPECT_TRUE(gradients[i].is_empty_handle() || gradients[i].device() == w[i].device());
        std::erase_if(gradients, [](const Tensor& gradient) { return gradient.is_empty_handle(); });
        return gradients;
      });
      std::vector<Floats> connected = expected;
      std::erase(connected, Floats{});
      EXPECT_EQ(values_of(inside(constant(0.f))), connected);
      const auto whole = function([&](Tensor) { return moving.loss({w.begin(), w.end()}); });
      GradientTape tape;
      EXPECT_EQ(values_of(tape.gradient(whole(constant(0.f)), w)), expected);
    }
    const Graph g;
    std::vector<Tensor> fetched;
    {
      const GraphScope in(g);
      const std::vector<Variable> w = moving.variables();
      const Tensor loss = moving.loss({w.begin(), w.end()});
      fetched = gradients(loss, w);
    }
    std::vector<Floats> connected = expected;
    std::erase(connected, Floats{});
    std::erase_if(fetched, [](const Tensor& gradient) { return gradient.is_empty_handle(); });
    Session session(g);
    session.initialize_variables();
    EXPECT_EQ(values_of(session.run(fetched, {})), connected);
  }
}

}  // namespace
}  // namespace plimsoll
