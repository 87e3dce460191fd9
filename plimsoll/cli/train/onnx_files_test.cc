#include "plimsoll/cli/train/onnx_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/onnx/onnx_writer.h"
#include "plimsoll/model/onnx/save_onnx.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class OnnxFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/plimsoll_onnx_files_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    const Sequential model({layers::Dense(6, {.activation = "relu", .input_shape = {4}, .name = "first", .seed = 1}),
                            layers::Dense(1, {.seed = 2})});
    save_onnx(model, path("model.onnx"));
    input_ = OnnxModel(path("model.onnx")).inputs()[0].name;
    output_ = OnnxModel(path("model.onnx")).outputs()[0].name;
    const Tensor x = random_uniform({20, 4}, -1, 1, {.seed = 3});
    save_npz(path("in.npz"), {{input_, x}, {"y", x.sum({1}, {.keep_dims = true})}});
    wanted_ = model.predict(x);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  float loss(const std::string& model) const {
    const TensorTree data = load_npz(path("in.npz"));
    return square(load_onnx(model).predict(data[input_].tensor()) - data["y"].tensor()).mean().item<float>();
  }
  // A graph without inputs: a scalar constant and an empty tensor.
  void write_constants() const {
    OnnxMessage graph, opset, file;
    const auto add = [&](const char* name, const Tensor& value) {
      OnnxMessage attribute, node;
      attribute.text(1, "value");
      attribute.message(5, onnx_tensor("", value));
      attribute.integer(20, 4);
      node.text(2, name);
      node.text(4, "Constant");
      node.message(5, std::move(attribute));
      graph.message(1, std::move(node));
      graph.message(12, onnx_value_info(name, value.dtype(), value.shape()));
    };
    add("scalar", constant(std::int64_t{7}));
    add("empty", zeros({0, 3}));
    opset.integer(2, 13);
    file.integer(1, 7);
    file.message(8, std::move(opset));
    file.message(7, std::move(graph));
    AtomicFile out(path("constants.onnx"));
    file.write(out);
    out.commit();
  }

  std::string folder_, input_, output_;
  Tensor wanted_;
};

TEST_F(OnnxFiles, PredictsByNameInsideTheForecastsBudget) {
  const CliResult forecast =
      run_cli({"forecast", path("model.onnx"), "--predict", "--shape", input_ + "=20x4", "--json"});
  ASSERT_EQ(forecast.code, 0) << forecast.errors;
  const auto gate = parse_json(forecast.out)["smallest_budget_bytes"].get<std::size_t>();
  const auto predict = [&](std::size_t budget) {
    return run_cli({"predict", path("model.onnx"), "--input", path("in.npz"), "--out", path("out.npz"), "--budget",
                    std::to_string(budget)});
  };
  const CliResult result = predict(gate);
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.out, HasSubstr("1 output is in"));
  const Tensor y = NpzFile(path("out.npz")).read(output_);
  EXPECT_LT(abs(y - wanted_).max().item<float>(), 1e-5f);
  EXPECT_EQ(predict(gate - 1).code, 3);
  EXPECT_EQ(run_cli({"forecast", path("model.onnx"), "--predict", "--input", path("in.npz"), "--budget",
                     std::to_string(gate - 1)})
                .code,
            3);
  EXPECT_EQ(run_cli({"forecast", path("model.onnx"), "--predict", "--shape", "z=2"}).code, 1);
  EXPECT_EQ(run_cli({"forecast", path("model.onnx"), "--predict", "--shape", input_ + "=2x"}).code, 1);
}

TEST_F(OnnxFiles, AGraphWithoutInputsTakesAnNpzWithoutArrays) {
  write_constants();
  save_npz(path("none.npz"), TensorTree());
  const CliResult result =
      run_cli({"predict", path("constants.onnx"), "--input", path("none.npz"), "--out", path("out.npz")});
  ASSERT_EQ(result.code, 0) << result.errors;
  const NpzFile out(path("out.npz"));
  EXPECT_EQ(out.read("scalar").shape(), Shape::scalar());
  EXPECT_EQ(out.read("scalar").item<std::int64_t>(), 7);
  EXPECT_EQ(out.read("empty").shape(), (Shape{0, 3}));
}

TEST_F(OnnxFiles, InspectShowsOperatorsAndTensors) {
  const CliResult result = run_cli({"inspect", path("model.onnx")});
  EXPECT_EQ(result.code, 0) << result.errors;
  EXPECT_THAT(result.out, HasSubstr("MatMul 2"));
  EXPECT_THAT(result.out, HasSubstr("unsupported operators: none"));
}

TEST_F(OnnxFiles, TrainsAndWritesTheFileAgain) {
  const CliResult result =
      run_cli({"train", path("model.onnx"), "--data", path("in.npz"), "--epochs", "30", "--batch", "20",
               "--learning-rate", "0.05", "--budget", "1MiB", "--out", path("tuned"), "--json"});
  ASSERT_EQ(result.code, 0) << result.errors;
  EXPECT_LT(loss(path("tuned/model.onnx")), loss(path("model.onnx")) / 2);
}

TEST_F(OnnxFiles, EveryCommandRefusesAnUnknownOperatorByNameVersionAndNode) {
  OnnxMessage node, graph, opset, file;
  node.text(1, "x");
  node.text(2, "y");
  node.text(3, "odd one");
  node.text(4, "Frobnicate");
  graph.message(1, std::move(node));
  graph.message(11, onnx_value_info("x", f32, {2}));
  graph.message(12, onnx_value_info("y", f32, {2}));
  opset.integer(2, 13);
  file.integer(1, 7);
  file.message(8, std::move(opset));
  file.message(7, std::move(graph));
  AtomicFile out(path("odd.onnx"));
  file.write(out);
  out.commit();
  save_npz(path("x.npz"), {{"x", zeros({2})}, {"y", zeros({2})}});
  const std::vector<std::vector<std::string>> commands = {
      {"predict", path("odd.onnx"), "--input", path("x.npz")},
      {"forecast", path("odd.onnx"), "--predict"},
      {"train", path("odd.onnx"), "--data", path("x.npz"), "--loss", "mse"},
  };
  for (const auto& command : commands) {
    const CliResult result = run_cli(command);
    EXPECT_EQ(result.code, 1) << command[0];
    for (const char* part : {"unsupported", "Frobnicate", "version 13", "odd one"})
      EXPECT_THAT(result.errors, HasSubstr(part)) << command[0];
  }
  const CliResult shown = run_cli({"inspect", path("odd.onnx")});
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_THAT(shown.out, HasSubstr("Frobnicate"));
}

TEST_F(OnnxFiles, RefusalsSayUnsupported) {
  const CliResult result = run_cli({"predict", path("model.onnx"), "--input", path("in.npz"), "--weights", "w"});
  EXPECT_EQ(result.code, 1);
  AtomicFile file(path("bad.onnx"));
  file.write("no model");
  file.commit();
  EXPECT_EQ(run_cli({"predict", path("bad.onnx"), "--input", path("in.npz")}).code, 1);
}

}  // namespace
}  // namespace plimsoll
