#include "plimsoll/graph/file_writer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/io/io_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

using summary::FileWriter;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Layer {
  Graph graph;
  Tensor x, y, train;
  Layer() {
    const GraphScope in(graph);
    {
      const NameScope scope("Input");
      x = placeholder(f32, {-1, 4}, "x");
    }
    const NameScope scope("dense");
    const Variable kernel(ones({4, 3}), {.name = "kernel"});
    y = relu(matmul(x, kernel));
    train = train::GradientDescentOptimizer(0.1).minimize(y.sum());
  }
};

const GraphNode& node(const GraphDefinition& graph, const std::string& name) {
  for (const GraphNode& one : graph.nodes)
    if (one.name == name) return one;
  ADD_FAILURE() << "no node " << name;
  return graph.nodes[0];
}

const NodeRun* run_of(const RunMetadata& metadata, const std::string& name) {
  for (const DeviceRun& device : metadata.devices)
    for (const NodeRun& run : device.nodes)
      if (run.name == name) return &run;
  return nullptr;
}

TEST(GraphDefinition, HasNamesOpsEdgesDevicesAndShapes) {
  const Layer layer;
  const GraphDefinition graph = summary::graph_definition(layer.graph);
  EXPECT_EQ(graph.nodes.size(), layer.graph.size());
  const GraphNode& x = node(graph, "Input/x");
  EXPECT_EQ(x.op, "Placeholder");
  EXPECT_EQ(x.device, current_device().name());
  EXPECT_THAT(x.inputs, IsEmpty());
  ASSERT_EQ(x.output_shapes.size(), 1u);
  EXPECT_EQ(x.output_shapes[0].to_string(), "[?, 4]");
  EXPECT_THAT(x.output_dtypes, ElementsAre(f32));
  EXPECT_EQ(node(graph, "dense/kernel").op, "VariableV2");
  ASSERT_EQ(node(graph, "dense/kernel").inputs.size(), 1u) << "its initial value";
  const GraphNode& product = node(graph, "dense/matmul");
  EXPECT_THAT(product.inputs, ElementsAre("Input/x", "dense/kernel"));
  EXPECT_EQ(product.output_shapes[0].to_string(), "[?, 3]");
  const GraphNode& group = node(graph, layer.train.name());
  EXPECT_EQ(group.op, "NoOp");
  EXPECT_THAT(group.inputs, Contains(StartsWith("^")));
}

TEST(GraphDefinition, EveryInputIsANodeOfTheGraph) {
  Graph graph;
  {
    const GraphScope in(graph);
    const Variable eager_like(ones({2}), {.name = "v"});
    const Tensor changed = eager_like.assign_add(ones({2}));
    const Tensor read = eager_like.value() * 2.f;
    const std::vector<Tensor> parts = split(read, 2);
    const Tensor sum = parts[0] + parts[1];
    const ControlDependencies after({changed});
    const Tensor last = sum * 3.f;
  }
  const GraphDefinition definition = summary::graph_definition(graph);
  std::vector<std::string> names;
  for (const GraphNode& one : definition.nodes) names.push_back(one.name);
  for (const GraphNode& one : definition.nodes)
    for (const std::string& input : one.inputs)
      EXPECT_THAT(names, Contains(input.substr(input[0] == '^' ? 1 : 0, input.find(':'))));
  EXPECT_EQ(node(definition, "v/assign").op, "AssignAdd");
  EXPECT_EQ(node(definition, "v/read").op, "Identity");
  EXPECT_THAT(node(definition, "v/read").inputs, ElementsAre("v"));
}

TEST(RunMetadata, HasTheBytesOfEveryNodeThatRuns) {
  const Layer layer;
  const Tensor batch = ones({8, 4});
  const RunMetadata metadata = summary::run_metadata({layer.y}, {{layer.x, batch}});
  ASSERT_EQ(metadata.devices.size(), 1u);
  EXPECT_EQ(metadata.devices[0].name, current_device().name());
  const NodeRun* product = run_of(metadata, "dense/matmul");
  ASSERT_TRUE(product);
  EXPECT_EQ(product->bytes, 8u * 3 * 4);
  EXPECT_GE(product->peak_bytes, product->bytes);
  EXPECT_EQ(product->live_bytes, product->bytes);
  EXPECT_EQ(product->outputs.at(0).second, (Shape{8, 3}));
  EXPECT_EQ(run_of(metadata, "dense/kernel")->bytes, 0u) << "a variable is there already";
  EXPECT_FALSE(run_of(metadata, "Input/x")) << "fed, not run";
  EXPECT_FALSE(run_of(metadata, layer.train.name())) << "not needed";

  const RunMetadata training = summary::run_metadata({layer.train}, {{layer.x, batch}});
  EXPECT_GT(training.devices.at(0).nodes.size(), metadata.devices[0].nodes.size());
}

TEST(RunMetadata, RefusesWhatDoesNotFit) {
  const Layer layer;
  EXPECT_THAT(message_of<InvalidArgument>([&] { summary::run_metadata({layer.y}); }), HasSubstr("\"Input/x\""));
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                summary::run_metadata({layer.y}, {{layer.x, ones({8, 5})}});
              }),
              HasSubstr("[?, 4]"));
  EXPECT_THROW(summary::run_metadata({ones({2})}), InvalidArgument);
  EXPECT_THROW(summary::run_metadata({layer.y}, {{ones({2}), ones({2})}}), InvalidArgument);
  EXPECT_TRUE(summary::run_metadata({}).devices.empty());
}

class FileWriterTest : public FileFixture {};

TEST_F(FileWriterTest, WritesWhatTheReaderReads) {
  const Layer layer;
  std::filesystem::path path;
  {
    FileWriter writer(directory_ / "logs", layer.graph);
    path = writer.path();
    writer.add_scalar("loss", 0.5f, 1);
    writer.add_histogram("w", ones({10}), 1);
    writer.add_text("notes", "hello", 1);
    writer.add_image("picture", patterned({4, 4, 3}, u8), 1);
    writer.add_run_metadata("step 1", summary::run_metadata({layer.y}, {{layer.x, ones({8, 4})}}), 1);
    writer.flush();
    writer.close();
    writer.close();
    EXPECT_THROW(writer.add_scalar("late", 1, 2), FailedPrecondition);
    EXPECT_THROW(writer.add_graph(layer.graph), FailedPrecondition);
  }
  EXPECT_THAT(path.filename().string(), StartsWith("events.out.tfevents."));
  std::vector<SummaryEvent> events;
  EventReader reader(path);
  while (auto event = reader.next()) events.push_back(*event);
  ASSERT_EQ(events.size(), 7u);
  const GraphSummary graph = summarize_graph(events[1].graph);
  EXPECT_EQ(graph.num_nodes, layer.graph.size());
  EXPECT_THAT(graph.names, Contains("dense/kernel"));
  EXPECT_THAT(graph.devices, Contains(HasSubstr("device:" + current_device().name())));
  EXPECT_EQ(events[2].values.at(0).scalar, 0.5f);
  EXPECT_EQ(events[3].values.at(0).histogram.count, 10);
  EXPECT_EQ(events[6].run_tag, "step 1");
  EXPECT_THAT(events[6].run_metadata, HasSubstr("dense/matmul"));
}

}  // namespace
}  // namespace plimsoll
