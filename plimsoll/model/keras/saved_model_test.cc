// Models on the disk: replaced in one step, refused by what they are, read in bounded time and memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/file_size_limit_testing.h"
#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/keras/layer_config.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/leak_check.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

// A folder of its own, with a function that puts a model.json into it.
class Saved : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("plimsoll_saved_model_test_" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path() const { return (directory_ / "model.json").string(); }
  std::string put(const std::string& text) const {
    std::ofstream(directory_ / "model.json") << text;
    return path();
  }
  std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto& entry : fs::directory_iterator(directory_)) result.insert(entry.path().filename());
    return result;
  }
  template <class F>
  static std::string told(F&& f) {
    try {
      f();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
  static Sequential model_of(std::int64_t units, std::uint64_t seed) {
    return Sequential({layers::Dense(units, {.input_shape = {3}, .name = "only", .seed = seed})});
  }
  fs::path directory_;
};

TEST_F(Saved, ModelsAreReplacedInOneStep) {
  const Tensor x = random_normal({2, 3}, {.seed = 1});
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Sequential model = model_of(2 + static_cast<std::int64_t>(seed), seed);
    save_layers_model(model, directory_.string());
    EXPECT_EQ(load_layers_model(path()).predict(x).to_vector<float>(), model.predict(x).to_vector<float>());
    EXPECT_EQ(names(), (std::set<std::string>{"model.json", seed % 2 == 1 ? "weights.bin" : "weights-2.bin"}));
  }
}

TEST_F(Saved, ASaveThatFailsLeavesTheModelThatWasThere) {
  const Tensor x = random_normal({2, 3}, {.seed = 1});
  Sequential before = model_of(2, 1);
  save_layers_model(before, directory_.string());
  const std::set<std::string> files = names();
  Sequential after = model_of(2, 2);
  {
    const FileSizeLimit full(100);  // The weights fit, model.json does not.
    EXPECT_THROW(save_layers_model(after, directory_.string()), Error);
  }
  EXPECT_EQ(names(), files);
  EXPECT_EQ(load_layers_model(path()).predict(x).to_vector<float>(), before.predict(x).to_vector<float>());
}

TEST_F(Saved, WhatAKilledSaveLeftIsRemovedByTheNext) {
  save_layers_model(model_of(2, 1), directory_.string());
  for (const char* name : {"weights-2.bin", "weights-2.bin.tmp-1-0", "weights.bin.tmp-1-1", "model.json.tmp-1-2"})
    std::ofstream(directory_ / name) << "left behind";
  std::ofstream(directory_ / "notes.txt") << "kept";
  save_layers_model(model_of(2, 2), directory_.string());
  EXPECT_EQ(names(), (std::set<std::string>{"model.json", "notes.txt", "weights-2.bin"}));
}

TEST_F(Saved, ValuesOfAnotherKindAreCorruptionWithTheirPlace) {
  EXPECT_NE(told([&] { load_layers_model(put(R"({"format": 7})")); }).find("model.json/format: expected text"),
            std::string::npos);
  for (const char* text :
       {R"({"format": 7})", R"({"modelTopology": {"model_config": 3}})", R"({"modelTopology": {"model_config": {}}})",
        R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": 7}]}})",
        R"({"class_name": "Sequential", "config": {"layers": [7]}})", R"({"class_name": 7, "config": []})",
        R"({"class_name": "Model", "config": {"layers": [{"class_name": "InputLayer", "name": 7, "config":
            {"batch_input_shape": [null, 2]}}], "input_layers": [], "output_layers": []}})",
        R"({"class_name": "Sequential", "config": {"name": 7, "layers": []}})"})
    EXPECT_THROW(load_layers_model(put(text)), Corruption) << text;
}

TEST_F(Saved, ModelsInOtherFormsAreNamedWithTheWayToConvertThem) {
  const auto refused = [&](const std::string& what) {
    const std::string text = told([&] { load_layers_model(what); });
    return text;
  };
  EXPECT_NE(refused(put("\x89HDF\r\n\x1a\n")).find("load_keras"), std::string::npos);
  EXPECT_NE(refused(put("PK\x03\x04")).find("load_keras"), std::string::npos);
  EXPECT_NE(refused(put(R"({"format": "graph-model"})")).find("--output_format=tfjs_layers_model"), std::string::npos);
  EXPECT_NE(refused(directory_.string()).find("give \"" + path()), std::string::npos);
  fs::remove(path());
  std::ofstream(directory_ / "saved_model.pb") << "";
  EXPECT_NE(refused(directory_.string()).find("--input_format=keras_saved_model"), std::string::npos);
  EXPECT_NE(refused("https://example.org/model.json").find("download it first"), std::string::npos);
}

std::string chain(std::size_t length, bool functional) {
  std::string layers;
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t n = functional ? length - 1 - i : i;  // The last comes first: all wait for one.
    if (i > 0) layers += ",";
    layers += R"({"class_name": "Activation", "config": {"activation": "relu", "name": "a)" + std::to_string(n) + "\"";
    if (!functional && n == 0) layers += R"(, "batch_input_shape": [null, 2])";
    layers += "}";
    if (functional)
      layers += R"(, "name": "a)" + std::to_string(n) + R"(", "inbound_nodes": [[[")" +
                (n == 0 ? std::string("in") : "a" + std::to_string(n - 1)) + R"(", 0, 0, {}]]])";
    layers += "}";
  }
  if (!functional) return R"({"class_name": "Sequential", "config": {"name": "s", "layers": [)" + layers + "]}}";
  return R"({"class_name": "Model", "config": {"name": "m", "layers": [{"class_name": "InputLayer", "name": "in",
      "config": {"batch_input_shape": [null, 2], "name": "in"}, "inbound_nodes": []},)" +
         layers + R"(], "input_layers": [["in", 0, 0]], "output_layers": [["a)" + std::to_string(length - 1) +
         R"(", 0, 0]]}})";
}

TEST_F(Saved, LoadingAndSavingTakeTimeInProportionToTheLayers) {
  for (const bool functional : {false, true}) {
    const auto work = [&](std::size_t length) {
      put(chain(length, functional));
      const std::size_t allocations = heap_allocations(), bytes = heap_bytes();
      save_layers_model(load_layers_model(path()), directory_.string());
      return std::pair<double, double>(heap_allocations() - allocations, heap_bytes() - bytes);
    };
    work(10);
    const auto one = work(500), four = work(2000);
    EXPECT_LT(four.first / one.first, 5) << functional;  // Four times as many; squared, it would be 16.
    EXPECT_LT(four.second / one.second, 5) << functional;
  }
}

TEST_F(Saved, ChainsOfAnyLengthEnd) { EXPECT_NO_THROW(load_layers_model(put(chain(20000, true)))); }

TEST_F(Saved, WeightsThatNobodyAskedForTakeNoMemory) {
  // 11 GiB, and more than any machine has.
  const auto dense = [&](const std::string& units) {
    return put(R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": {"units": )" +
               units + R"(, "batch_input_shape": [null, 54321], "name": "d"}}]}})");
  };
  LeakCheck check;
  reset_memory_stats();
  const std::size_t peak = memory_stats().peak_bytes_in_use;
  {
    Model model = load_layers_model(dense("54321"), {.weights = false});
    EXPECT_EQ(model.num_parameters(), 54321u * 54322u);
    model.compile({.optimizer = "adam", .loss = "mse"});
    EXPECT_GE(model.forecast({.batch_size = 1}).by_category.at("parameters"), 54321u * 54322u * 4);
    EXPECT_EQ(memory_stats().peak_bytes_in_use, peak);
  }
  EXPECT_THROW(load_layers_model(dense("1000000000000"), {.weights = false}), Corruption);
  EXPECT_THROW(load_layers_model(dense("1000000000")), OutOfMemory);  // 198 TiB: refused before a byte is taken.
  EXPECT_EQ(memory_stats().peak_bytes_in_use, peak);
  check.expect_none();
}

TEST_F(Saved, AForecastOfSizesThatNoMachineHasIsRefused) {
  Model model = load_layers_model(put(R"({"class_name": "Sequential", "config": {"layers": [
          {"class_name": "UpSampling2D", "config": {"size": [1000000, 1000000], "batch_input_shape": [null, 100, 100, 1]}},
          {"class_name": "GlobalMaxPooling2D", "config": {}}]}})"),
                                  {.weights = false});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_NE(told([&] { model.forecast({.batch_size = 1}); }).find("more than 1.0 PiB between its layers"),
            std::string::npos)
      << told([&] { model.forecast({.batch_size = 1}); });
  EXPECT_THROW(model.max_batch_size(std::size_t{1} << 40), InvalidArgument);
}

// Multiplies; remembers by what.
class Scale : public LayerBase {
 public:
  explicit Scale(double by) : by_(by) {}
  const char* class_name() const override { return "Scale"; }
  void build(const Shapes& in) override { shift_ = add_weight("shift", {in[0].back()}, {.initializer = "ones"}); }
  Tensor call(const Tensor& x, CallContext&) override { return x * by_ + Tensor(*shift_); }
  void config(ConfigWriter& out) const override { out.put("by", by_); }

 private:
  const double by_;
  std::optional<Variable> shift_;
};

TEST_F(Saved, LayersOfYourOwnComeBack) {
  Sequential model({layers::Dense(2, {.input_shape = {3}, .seed = 1}), make_layer<Scale>(2.5)});
  save_layers_model(model, directory_.string());
  EXPECT_NE(told([&] { load_layers_model(path()); }).find("call layers::register_layer first"), std::string::npos);
  layers::register_layer("Scale", [](const ConfigReader& in) { return make_layer<Scale>(in.number("by", 1)); });
  const Tensor x = random_normal({2, 3}, {.seed = 1});
  EXPECT_EQ(load_layers_model(path()).predict(x).to_vector<float>(), model.predict(x).to_vector<float>());
  // A setting that its factory does not ask for is refused, as everywhere.
  layers::register_layer("Scale", [](const ConfigReader&) { return make_layer<Scale>(1); });
  EXPECT_NE(told([&] { load_layers_model(path()); }).find("/by: 2.5 is a setting of Scale \"scale\""),
            std::string::npos);
  EXPECT_THROW(layers::register_layer("Dense", [](const ConfigReader&) { return make_layer<Scale>(1); }),
               InvalidArgument);
  EXPECT_THROW(layers::register_layer("", [](const ConfigReader&) { return make_layer<Scale>(1); }), InvalidArgument);
  EXPECT_THROW(layers::register_layer("Other", {}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
