// Graphs over several logical devices: copies between them, one extent on each.
#include <gmock/gmock.h>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
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

}  // namespace
}  // namespace plimsoll
