// Graphs over several logical devices: copies between them, one extent on each.
#include <gmock/gmock.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/config.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
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
    config::set_logical_device_configuration(cpu, {{.memory_limit = 8_MiB}, {.memory_limit = 4_MiB}});
  }
  void TearDown() override {
    reset_default_graph();
    config::reset_for_testing();
  }
};

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
      EXPECT_THAT(error.what(), HasSubstr("CPU:0, CPU:1"));
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

}  // namespace
}  // namespace plimsoll
