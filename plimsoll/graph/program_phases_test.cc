// What traces say that the steps of plans are for.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/trace_history.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ProgramPhases : public testing::Test {
 protected:
  ~ProgramPhases() override { std::filesystem::remove(path_); }

  TraceFile recorded(FunctionRef<void()> work) const {
    {
      const TraceRecorder recorder({.path = path_});
      work();
    }
    return read_trace_file(path_);
  }
  // Of the plan of that number: its phases, and how many steps each has in all.
  static std::map<std::string, std::uint32_t> steps_by_phase(const TraceFile& file, std::size_t number) {
    std::map<std::string, std::uint32_t> steps;
    const TracePlan& plan = file.plans.at(number);
    for (std::size_t i = 0; i < plan.phases.size(); ++i)
      steps[file.names[plan.phases[i].name]] +=
          (i + 1 < plan.phases.size() ? plan.phases[i + 1].first : plan.steps) - plan.phases[i].first;
    return steps;
  }
  static std::vector<std::string> marks_of(const TraceFile& file) {
    std::vector<std::string> marks;
    for (const TracedMark& mark : make_trace_history(file).marks)
      if (mark.kind == MarkKind::kPhase) marks.push_back(mark.text);
    return marks;
  }

  const Tensor x_ = random_normal({4, 8}, {.seed = 3}), y_ = random_normal({4, 1}, {.seed = 4});
  const Variable w1_{random_normal({8, 16}, {.seed = 1}), {.name = "w1"}};
  const Variable w2_{random_normal({16, 1}, {.seed = 2}), {.name = "w2"}};
  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("plimsoll_phases_" + std::to_string(getpid()));
};

TEST_F(ProgramPhases, OfATrainingStepAreForwardBackwardAndUpdate) {
  const Optimizer adam(AdamOptions{});
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Tensor loss = square(matmul(tanh(matmul(x, w1_)), w2_) - y).mean();
    std::vector<Tensor> gradients = tape.gradient(loss, std::vector<Variable>{w1_, w2_});
    for (Tensor& gradient : gradients) gradient = clip(gradient, -0.5, 0.5);  // From gradients: backward still.
    adam.apply({w1_, w2_}, gradients);
    return loss;
  });
  step(x_, y_);
  const TraceFile file = recorded([&] { step(x_, y_); });
  ASSERT_EQ(file.plans.size(), 1u);
  const auto steps = steps_by_phase(file, 0);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_GE(steps.at("forward"), 4u);
  EXPECT_GE(steps.at("backward"), 5u);
  EXPECT_EQ(steps.at("update"), 2u);
  EXPECT_EQ(file.plans[0].phases[0].first, 0u);
  const std::vector<std::string> marks = marks_of(file);
  ASSERT_GE(marks.size(), 4u);
  EXPECT_EQ(marks[0], "forward");
  EXPECT_EQ(marks[1], "backward");
  EXPECT_EQ(marks[marks.size() - 2], "update");
  EXPECT_EQ(marks.back(), "between steps");
  for (const TracePlan::Value& value : file.plans[0].values) {
    if (value.label.category == Category::kGradients) {
      EXPECT_GE(value.first, file.plans[0].phases[1].first);
    }
  }
}

TEST_F(ProgramPhases, OfASessionsStepAreTheSame) {
  const Graph graph;
  Tensor x, y, loss, train;
  {
    const GraphScope in(graph);
    x = placeholder(f32, {-1, 8}, "x");
    y = placeholder(f32, {-1, 1}, "y");
    const Variable w(random_normal({8, 1}, {.seed = 1}), {.name = "w"});
    loss = square(matmul(x, w) - y).mean();
    train = train::GradientDescentOptimizer(0.01f).minimize(loss);
  }
  Session session(graph);
  session.initialize_variables();
  const TraceFile file = recorded([&] {
    session.run(loss, {{x, x_}, {y, y_}});
    session.run({loss, train}, {{x, x_}, {y, y_}});
  });
  ASSERT_EQ(file.plans.size(), 2u);
  EXPECT_THAT(file.plans[0].phases, IsEmpty());
  const auto steps = steps_by_phase(file, 1);
  EXPECT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps.at("update"), 2u);  // And its count of steps.
}

TEST_F(ProgramPhases, AreNotToldWhereThereAreNoGradients) {
  const Variable seen(zeros({4, 16}));
  const auto f = function([&](Tensor x) {
    const Tensor h = matmul(x, w1_);
    seen.assign_add(h);  // As running statistics are.
    return matmul(tanh(h), w2_);
  });
  f(x_);
  const TraceFile file = recorded([&] { f(x_); });
  ASSERT_EQ(file.plans.size(), 1u);
  EXPECT_THAT(file.plans[0].phases, IsEmpty());
  EXPECT_THAT(marks_of(file), IsEmpty());
}

TEST_F(ProgramPhases, UnderATapeOutsideTheGradientsPlanIsBackward) {
  const auto f = function([&](Tensor x) { return square(matmul(tanh(matmul(x, w1_)), w2_)).sum(); });
  const auto gradient = [&] {
    GradientTape tape;
    const Tensor loss = f(x_);
    tape.gradient(loss, std::vector<Variable>{w1_});
  };
  gradient();
  const TraceFile file = recorded(gradient);
  EXPECT_THAT(marks_of(file), ElementsAre("backward", "between steps"));
}

}  // namespace
}  // namespace plimsoll
