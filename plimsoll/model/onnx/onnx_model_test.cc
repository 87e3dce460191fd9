#include "plimsoll/model/onnx/onnx_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/onnx/exported_models_testing.h"
#include "plimsoll/model/onnx/onnx_graph.h"
#include "plimsoll/model/onnx/onnx_inspect.h"
#include "plimsoll/model/onnx/onnx_layer.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/model/onnx/onnx_writer.h"
#include "plimsoll/model/onnx/save_onnx.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using ::testing::HasSubstr;

class OnnxModelTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("plimsoll_onnx_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A file of one node, with an input "x" of this shape and an output "y".
  void write_node(const std::string& name, const std::string& op, const Shape& shape, std::int64_t version = 17) {
    OnnxMessage node, graph, opset, file;
    node.text(1, "x");
    node.text(2, "y");
    node.text(3, "only");
    node.text(4, op);
    graph.message(1, std::move(node));
    graph.text(2, "test");
    graph.message(11, onnx_value_info("x", f32, shape));
    graph.message(12, onnx_value_info("y", f32, shape));
    opset.integer(2, version);
    file.integer(1, 8);
    file.message(8, std::move(opset));
    file.message(7, std::move(graph));
    AtomicFile out(path(name));
    file.write(out);
    out.commit();
  }

 private:
  std::filesystem::path folder_;
};

Sequential image_model() {
  return Sequential({layers::Conv2D(6, 3, {.padding = "same", .activation = "relu", .input_shape = {8, 8, 3}}),
                     layers::BatchNormalization(), layers::MaxPooling2D(2),
                     layers::Conv2D(4, 3, {.strides = 2, .activation = "tanh"}), layers::Flatten(),
                     layers::Dense(5, {.activation = "softmax"})});
}

float largest_difference(const Tensor& a, const Tensor& b) { return abs(a - b).max().item<float>(); }

TEST_F(OnnxModelTest, LayersAreWrittenAndReadBack) {
  const Sequential model = image_model();
  save_onnx(model, path("image.onnx"));
  const Tensor x = random_uniform({3, 8, 8, 3}, -1, 1, {.seed = 5});
  const OnnxModel read(path("image.onnx"));
  ASSERT_EQ(read.inputs().size(), 1u);
  EXPECT_EQ(read.inputs()[0].shape, (Shape{kUnknownSize, 8, 8, 3}));
  const Tensor y = read.predict({{read.inputs()[0].name, x}})[0];
  EXPECT_EQ(y.shape(), (Shape{3, 5}));
  EXPECT_LT(largest_difference(y, model.predict(x)), 1e-5f);
  EXPECT_LT(largest_difference(read.model().predict(x), y), 1e-5f);
}

TEST_F(OnnxModelTest, WhatWasReadIsTrainedInABudgetAndSaved) {
  save_onnx(image_model(), path("image.onnx"));
  Model model = load_onnx(path("image.onnx"));
  model.compile(
      {.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = losses::SparseCategoricalCrossentropy()});
  const Tensor x = random_uniform({16, 8, 8, 3}, -1, 1, {.seed = 5}),
               y = cast(random_uniform({16}, 0, 5, {.seed = 6}), i32);
  const Dataset data = Dataset::from_tensors(x, y).batch(16);
  const std::size_t smallest = model.forecast(data).smallest_budget;
  EXPECT_THROW(model.fit(data, {.epochs = 1, .verbose = 0, .budget = smallest - 1}), OutOfMemory);
  const History run = model.fit(data, {.epochs = 20, .verbose = 0, .budget = smallest});
  EXPECT_LE(run.peak_bytes(), smallest);
  EXPECT_LT(run["loss"].back(), run["loss"].front());
  save_onnx(model, path("tuned.onnx"));
  EXPECT_EQ(largest_difference(load_onnx(path("tuned.onnx")).predict(x), model.predict(x)), 0.f);
}

TEST_F(OnnxModelTest, ForecastOfShapesIsTheGateOfPredictions) {
  save_onnx(image_model(), path("image.onnx"));
  const OnnxModel model(path("image.onnx"));
  const std::string input = model.inputs()[0].name;
  const MemoryForecast forecast =
      OnnxModel(path("image.onnx"), {.weights = false}).forecast({{input, Shape{4, 8, 8, 3}}});
  const Tensor x = random_uniform({4, 8, 8, 3}, -1, 1, {.seed = 5});
  EXPECT_EQ(model.forecast({{input, x}}).smallest_budget, forecast.smallest_budget);
  const Tensor y = model.predict({{input, x}})[0];
  EXPECT_EQ(largest_difference(model.predict({{input, x}}, {.budget = forecast.smallest_budget})[0], y), 0.f);
  EXPECT_THROW(model.predict({{input, x}}, {.budget = forecast.smallest_budget - 1}), OutOfMemory);
  EXPECT_THROW(model.forecast(std::map<std::string, Shape>{}), FailedPrecondition);
  // Of any model: predictions in batches.
  const MemoryForecast batches = image_model().forecast({.batch_size = 4, .predict = true});
  EXPECT_GT(batches.peak_bytes, 0u);
  EXPECT_GE(batches.peak_bytes, batches.smallest_budget);
}

TEST_F(OnnxModelTest, RefusalsNameOperatorVersionAndNode) {
  write_node("odd.onnx", "Frobnicate", {2});
  try {
    OnnxModel model(path("odd.onnx"));
    FAIL();
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), HasSubstr("unsupported operator Frobnicate (version 17), node \"only\""));
  }
  write_node("new.onnx", "Relu", {2}, 99);
  EXPECT_THROW(OnnxModel(path("new.onnx")), Unsupported);
  EXPECT_THROW(OnnxModel(path("none.onnx")), NotFound);
  EXPECT_THAT(describe_onnx(path("odd.onnx")).facts.back().second, HasSubstr("Frobnicate"));
}

TEST_F(OnnxModelTest, InputsMustBeAsTheFileSays) {
  write_node("relu.onnx", "Relu", {2, 3});
  const OnnxModel model(path("relu.onnx"));
  EXPECT_EQ(model.predict({{"x", constant({{-1.f, 2.f, 3.f}, {4.f, -5.f, 6.f}})}})[0].to_vector<float>(),
            (std::vector<float>{0, 2, 3, 4, 0, 6}));
  EXPECT_THROW(model.predict({}), NotFound);
  EXPECT_THROW(model.predict({{"x", zeros({2, 4})}}), InvalidArgument);
  EXPECT_THROW(model.predict({{"x", zeros({2, 3}, f64)}}), InvalidArgument);
}

TEST_F(OnnxModelTest, DamagedFilesAreRefusedWithAnOffset) {
  write_node("relu.onnx", "Relu", {2, 3});
  std::ifstream in(path("relu.onnx"), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  const std::string bytes = text.str();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto file = std::make_shared<const OnnxFile>("cut.onnx", std::string_view(bytes).substr(0, length));
    try {
      OnnxGraph::read(file);
    } catch (const Corruption& error) {
      EXPECT_THAT(error.what(), HasSubstr("offset"));
    } catch (const Unsupported&) {
    }
  }
}

TEST_F(OnnxModelTest, ExternalDataStayInTheFoldersFiles) {
  onnx::TensorProto proto;
  proto.name = "w";
  proto.type = onnx::kFloat;
  proto.dims = {2};
  proto.is_external = true;
  write_node("relu.onnx", "Relu", {2});
  const auto file = OnnxFile::open(path("relu.onnx"));
  std::ofstream(path("w.bin"), std::ios::binary) << std::string("\0\0\200\077\0\0\0\100", 8);
  proto.external = {{"location", "w.bin"}, {"offset", "0"}, {"length", "8"}};
  EXPECT_EQ(file->tensor(proto).to_vector<float>(), (std::vector<float>{1, 2}));
  for (const char* place : {"../w.bin", "/etc/passwd", "", "a/../../w.bin"}) {
    proto.external["location"] = place;
    EXPECT_THROW(file->tensor(proto), Corruption) << place;
  }
  proto.external = {{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}};
  EXPECT_THROW(file->tensor(proto), Corruption);
  proto.external["offset"] = "x";
  EXPECT_THROW(file->tensor(proto), Corruption);
}

// y = x + w, w in another file, or in this one when `inside`.
void write_sum(const std::filesystem::path& to, const std::string& weights, const Tensor& w, bool inside) {
  OnnxMessage node, tensor, graph, opset, file;
  node.text(1, "x");
  node.text(1, "w");
  node.text(2, "y");
  node.text(4, "Add");
  if (inside) {
    tensor = onnx_tensor("w", w);
  } else {
    for (const std::int64_t size : w.shape()) tensor.integer(1, size);
    tensor.integer(2, onnx::kFloat);
    tensor.text(8, "w");
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", weights}, {"offset", "4096"}}) {
      OnnxMessage entry;
      entry.text(1, key);
      entry.text(2, value);
      tensor.message(13, std::move(entry));
    }
    tensor.integer(14, 1);
    std::ofstream out(to.parent_path() / weights, std::ios::binary);
    const std::vector<float> values = w.to_vector<float>();
    out << std::string(4096, '-');
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(w.nbytes()));
  }
  graph.message(1, std::move(node));
  graph.text(2, "test");
  graph.message(5, std::move(tensor));
  graph.message(11, onnx_value_info("x", f32, w.shape()));
  graph.message(12, onnx_value_info("y", f32, w.shape()));
  opset.integer(2, 17);
  file.integer(1, 8);
  file.message(8, std::move(opset));
  file.message(7, std::move(graph));
  AtomicFile out(to);
  file.write(out);
  out.commit();
}

TEST_F(OnnxModelTest, ExternalWeightsStayOnTheFilesPagesUntilTheyChange) {
  const Tensor w = random_uniform({512, 512}, -1, 1, {.seed = 3}), x = random_uniform({512, 512}, -1, 1, {.seed = 4});
  write_sum(path("far.onnx"), "w.bin", w, false);
  const std::size_t before = memory().num_bytes;
  const OnnxModel model(path("far.onnx"));
  EXPECT_LT(memory().num_bytes, before + 1024);
  EXPECT_EQ(model.predict({{"x", x}})[0].to_vector<float>(), (x + w).to_vector<float>());
  const std::size_t needed = model.forecast({{"x", x}}).smallest_budget;
  EXPECT_LT(needed, 2 * x.nbytes() + 65536);  // x and y.
  EXPECT_EQ(OnnxModel(path("far.onnx"), {.weights = false}).forecast({{"x", x.shape()}}).smallest_budget, needed);
  EXPECT_NO_THROW(model.predict({{"x", x}}, {.budget = needed}));
  EXPECT_THROW(model.predict({{"x", x}}, {.budget = needed - 1}), OutOfMemory);
  const Model trainable = model.model();  // Into memory that is charged.
  EXPECT_GE(memory().num_bytes, before + w.nbytes());
  EXPECT_EQ(model.predict({{"x", x}})[0].to_vector<float>(), (x + w).to_vector<float>());
  model.layer()->weights()[0].variable.assign_add(ones({512, 512}));  // The file stays as it is.
  EXPECT_EQ(model.predict({{"x", x}})[0].to_vector<float>(), (x + (w + 1)).to_vector<float>());
  EXPECT_EQ(model.forecast({{"x", x}}).smallest_budget, needed + w.nbytes());
  EXPECT_EQ(OnnxModel(path("far.onnx")).predict({{"x", x}})[0].to_vector<float>(), (x + w).to_vector<float>());
}

// What PyTorch exports for a linear layer: turned once, while it is read, so that plans make one step of the layer.
TEST_F(OnnxModelTest, TransposedOperandsOfProductsAreTurnedOnce) {
  const Tensor w = random_uniform({40, 30}, -1, 1, {.seed = 3}), x = random_uniform({5, 30}, -1, 1, {.seed = 4});
  OnnxMessage node, graph, opset, file;
  for (const char* name : {"x", "w"}) node.text(1, name);
  node.text(2, "y");
  node.text(4, "Gemm");
  node.message(5, integer("transB", 1));
  graph.message(1, std::move(node));
  graph.text(2, "test");
  graph.message(5, onnx_tensor("w", w));
  graph.message(11, onnx_value_info("x", f32, x.shape()));
  graph.message(12, onnx_value_info("y", f32, {5, 40}));
  opset.integer(2, 17);
  file.integer(1, 8);
  file.message(8, std::move(opset));
  file.message(7, std::move(graph));
  AtomicFile out(path("linear.onnx"));
  file.write(out);
  out.commit();
  const OnnxModel model(path("linear.onnx"));
  EXPECT_EQ(model.layer()->weights()[0].variable.shape(), (Shape{30, 40}));
  EXPECT_LT(largest_difference(model.predict({{"x", x}})[0], matmul(x, w, {.transpose_b = true})), 1e-5f);
  save_onnx(model.model(), path("again.onnx"));
  EXPECT_EQ(OnnxModel(path("again.onnx")).layer()->weight_value(0).to_vector<float>(), w.to_vector<float>());
}

TEST_F(OnnxModelTest, AFileTakesItsTensorsAndAConstant) {
  for (const std::int64_t rows : {1, 512, 4096}) {
    write_sum(path("near.onnx"), "", random_uniform({rows, 512}, -1, 1, {.seed = 3}), true);
    const std::size_t before = memory().num_bytes, heap = heap_bytes();
    const OnnxModel model(path("near.onnx"));
    EXPECT_EQ(memory().num_bytes - before, static_cast<std::size_t>(rows) * 512 * 4);
    EXPECT_LT(heap_bytes() - heap, 64u << 10) << rows;  // All that is ever asked for, freed or not.
  }
}

TEST_F(OnnxModelTest, EveryFamilyOfLayersIsTheSameWhenReadBack) {
  for (const ExportedModel& each : exported_models()) {
    save_onnx(each.model, path(each.name + ".onnx"));
    const OnnxModel read(path(each.name + ".onnx"));
    std::map<std::string, Tensor> inputs;
    for (std::size_t i = 0; i < each.inputs.size(); ++i) inputs[read.inputs()[i].name] = each.inputs[i];
    const std::vector<Tensor> wanted = each.model.predict_all(each.inputs), got = read.predict(inputs);
    ASSERT_EQ(got.size(), wanted.size()) << each.name;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].shape(), wanted[i].shape()) << each.name;
      const float size = std::max(1.f, abs(wanted[i]).max().item<float>());
      EXPECT_LT(largest_difference(got[i], wanted[i]), 1e-5f * size) << each.name << ", output " << i;
    }
  }
}

TEST_F(OnnxModelTest, LayersWithoutAnOnnxFormAreRefused) {
  const auto refused = [&](const Sequential& model) {
    EXPECT_THROW(save_onnx(model, path("refused.onnx")), Unsupported);
    EXPECT_FALSE(std::filesystem::exists(path("refused.onnx")));
  };
  refused(Sequential({layers::Masking({.input_shape = {4, 2}}), layers::LSTM(3)}));
  refused(Sequential({layers::Embedding(5, 3, {.mask_zero = true, .input_length = 4}), layers::LSTM(3)}));
  refused(Sequential({layers::LSTM(3, {.activation = "linear", .input_shape = {4, 2}})}));
  EXPECT_THROW(OnnxModel{Model(image_model())}, InvalidArgument);
}

TEST_F(OnnxModelTest, ScalarsOfFormulasAreNotTrained) {
  save_onnx(Sequential({layers::Dense(3, {.activation = "gelu", .input_shape = {2}})}), path("gelu.onnx"));
  std::size_t trained = 0;
  for (const LayerBase::Weight& weight : OnnxModel(path("gelu.onnx")).layer()->weights()) trained += weight.trainable;
  EXPECT_EQ(trained, 2u);
}

TEST(OnnxOperators, AreAllInTheDocumentation) {
  std::ifstream in(TEST_DATA "/../docs/onnx.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const OnnxOperator& row : all_onnx_operators())
    EXPECT_THAT(text.str(), HasSubstr("`" + std::string(row.name) + "`")) << "docs/onnx.md lacks it";
}

}  // namespace
}  // namespace plimsoll
