#include "plimsoll/graph/graph.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Graph, NamesNodesByScopeAndNumber) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x");
  const NameScope scope("Layer");
  EXPECT_EQ(x.name(), "x");
  EXPECT_EQ((x + x).name(), "Layer/add");
  EXPECT_EQ((x + x).name(), "Layer/add_1");
  EXPECT_EQ(placeholder(f32, {2}, "Add").name(), "Layer/Add_2");
  EXPECT_EQ(constant({1.f}, {.name = "one"}).name(), "Layer/one");
}

TEST(Graph, CountsItsNodesAsOverhead) {
  const Tensor warm = constant(1.f);
  const std::size_t before = memory_overhead();
  {
    const Graph g;
    const GraphScope in(g);
    Tensor x = placeholder(f32, {2}, "x");
    const std::size_t empty = memory_overhead();
    for (int i = 0; i < 1000; ++i) x = x + x;
    EXPECT_GE(memory_overhead(), empty + 1000 * 200);
  }
  EXPECT_LE(memory_overhead(), before + 300'000) << "slabs of records may be left";
}

TEST(Graph, MinimizeNamesVariablesThatTheLossDoesNotDependOn) {
  std::vector<std::string> logged;
  const LogSink before = set_log_sink([&](LogLevel, std::string_view text) { logged.emplace_back(text); });
  {
    const Graph g;
    const GraphScope in(g);
    const Variable used(ones({2}), {.name = "used"}), left(ones({2}), {.name = "left"}),
        out(ones({2}), {.name = "out"});
    const Variable fixed(ones({2}), {.name = "fixed", .trainable = false});
    train::GradientDescentOptimizer(0.1).minimize((used * fixed).sum());
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_THAT(logged[0], HasSubstr("minimize: the loss does not depend on \"left\", \"out\", which will not change"));
    train::GradientDescentOptimizer(0.1).minimize((used + left + out).sum());
    train::GradientDescentOptimizer(0.1).minimize(used.value().sum(), std::vector<Variable>{used});
    EXPECT_EQ(logged.size(), 1u);
  }
  set_log_sink(before);
}

TEST(Graph, NumbersScopesThatAreEnteredAgain) {
  const Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x");
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const NameScope scope("s");
    names.push_back((x + x).name());
    const NameScope inner("t");
    names.push_back((x + x).name());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"s/add", "s/t/add", "s_1/add", "s_1/t/add", "s_2/add", "s_2/t/add"}));
  const Graph other;
  const GraphScope in_other(other);
  const NameScope scope("s");
  EXPECT_EQ(placeholder(f32, {2}, "x").name(), "s/x");
}

TEST(Graph, CountsNoSymbolicTensor) {
  const MemoryInfo before = memory();
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x"), y = x * 2.f;
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(Graph, InfersSizesThatAreUnknown) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {-1, 4}, "x");
  const Tensor y = matmul(x, ones({4, 3}));
  EXPECT_EQ(y.shape(), (Shape{-1, 3}));
  EXPECT_EQ(y.sum({0}).shape(), (Shape{3}));
  EXPECT_THROW(matmul(x, ones({5, 3})), InvalidArgument);
}

TEST(Graph, RefusesNodesOnceFinalized) {
  Graph g;
  Tensor x;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
  }
  g.finalize();
  const std::size_t size = g.size();
  EXPECT_THAT([&] { x + x; }, ThrowsMessage<FailedPrecondition>(HasSubstr("finalized")));
  EXPECT_EQ(g.size(), size);
}

TEST(Graph, AddsNothingWhenAnOperationIsRefused) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x"), y = placeholder(f32, {3}, "y");
  const std::size_t size = g.size();
  EXPECT_THROW(x + y, InvalidArgument);
  EXPECT_EQ(g.size(), size);
}

TEST(Graph, RefusesReadingWhatHasNoElements) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {}, "x");
  EXPECT_THAT([&] { x.item<float>(); }, ThrowsMessage<FailedPrecondition>(HasSubstr("while_loop")));
  EXPECT_THAT([&] { static_cast<void>(static_cast<bool>(x)); }, ThrowsMessage<FailedPrecondition>(HasSubstr("cond")));
  EXPECT_THROW(x.to_vector<float>(), FailedPrecondition);
  EXPECT_THROW(x.data<float>(), FailedPrecondition);
}

TEST(Graph, PrintsSymbolicTensors) {
  Graph g;
  const GraphScope in(g);
  EXPECT_EQ(to_string(placeholder(f32, {-1, 4}, "x")),
            "<Tensor: shape=(None, 4), dtype=float32, device=CPU:0, symbolic, name=\"x\">");
}

TEST(Graph, TellsItsTensorsFromOthers) {
  Tensor x, y, gone;
  Graph g, h;
  {
    const GraphScope in(g);
    x = placeholder(f32, {2}, "x");
  }
  {
    const GraphScope in(h);
    y = placeholder(f32, {2}, "y");
  }
  {
    Graph short_lived;
    const GraphScope in(short_lived);
    gone = placeholder(f32, {2}, "gone");
  }
  EXPECT_THAT([&] { x + y; }, ThrowsMessage<FailedPrecondition>(HasSubstr("another graph")));
  EXPECT_THAT([&] { gone + gone; }, ThrowsMessage<FailedPrecondition>(HasSubstr("gone")));
  Session session(g);
  EXPECT_THROW(session.run(y), FailedPrecondition);
  EXPECT_THROW(session.run(gone), FailedPrecondition);
}

TEST(Graph, IsDefaultWithinItsScopeOnly) {
  Graph g;
  const Graph shared = default_graph();
  {
    const GraphScope in(g);
    EXPECT_EQ(default_graph(), g);
    EXPECT_THROW(reset_default_graph(), FailedPrecondition);
  }
  EXPECT_EQ(default_graph(), shared);
  reset_default_graph();
  EXPECT_FALSE(default_graph() == shared);
}

TEST(Graph, RunsWhatANodeWaitsFor) {
  Graph g;
  Tensor after, read;
  {
    const GraphScope in(g);
    const Variable counter(zeros({}), {.name = "counter"});
    const Tensor increment = counter.assign_add(ones({}));
    const ControlDependencies wait({increment});
    after = ones({}) * 2.f;
    read = counter.value();
  }
  Session session(g);
  session.initialize_variables();
  EXPECT_EQ(session.run(after).item<float>(), 2);
  EXPECT_EQ(session.run(read).item<float>(), 2);
}

TEST(Graph, DrawsItself) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {-1, 4}, "x"), y = relu(x);
  EXPECT_THAT(g.to_dot(), HasSubstr("n0 -> n1"));
  EXPECT_THAT(g.to_dot(), HasSubstr("float32 [?, 4]"));
}

TEST(Gradients, GiveAnEmptyHandleForWhatIsUnconnected) {
  Graph g;
  const GraphScope in(g);
  const Tensor x = placeholder(f32, {2}, "x"), y = placeholder(f32, {2}, "y");
  const Tensor loss = square(x).sum();
  const std::vector<Tensor> found = gradients(loss, {x, y});
  EXPECT_EQ(found[0].shape(), (Shape{2}));
  EXPECT_TRUE(found[1].is_empty_handle());
  EXPECT_THROW(gradients(x > y, {x}), InvalidArgument);
}

TEST(Gradients, AreWorkedOutForEachSize) {
  Graph g;
  Tensor x, gradient, second;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 2}, "x");
    gradient = gradients((x * x * x).mean(), {x})[0];
    second = gradients(gradient.sum(), {x})[0];
  }
  Session session(g);
  EXPECT_EQ(session.run(gradient, {{x, ones({3, 2})}}).to_vector<float>(), std::vector<float>(6, 0.5f));
  EXPECT_EQ(session.run(gradient, {{x, ones({1, 2})}}).to_vector<float>(), std::vector<float>(2, 1.5f));
  EXPECT_EQ(session.run(second, {{x, ones({1, 2})}}).to_vector<float>(), std::vector<float>(2, 3.f));
}

}  // namespace
}  // namespace plimsoll
