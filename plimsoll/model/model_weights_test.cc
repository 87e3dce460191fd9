#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/error.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/object_graph.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

class Weights : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("plimsoll_model_weights_test_" + std::to_string(getpid()));
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const char* name) const { return (directory_ / name).string(); }

  fs::path directory_;
};

std::vector<std::vector<float>> values_of(const Model& model) {
  std::vector<std::vector<float>> result;
  for (const Variable& weight : model.weights()) result.push_back(weight.value().to_vector<float>());
  return result;
}

std::vector<std::vector<float>> state_of(const Model& model) {
  std::vector<std::vector<float>> result;
  for (const Variable& weight : model.trainable_weights())
    for (const Optimizer::Slot& slot : model.optimizer().slots(weight)) result.push_back(slot.value.to_vector<float>());
  return result;
}

std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  const BundleReader reader(path);
  for (const BundleEntry& entry : reader.entries()) keys.push_back(entry.key);
  return keys;
}

const std::string kValue = "/.ATTRIBUTES/VARIABLE_VALUE";

// Two branches of different depth, wrappers, statistics.
Model make_model(const OptimizerChoice& optimizer, std::uint64_t seed) {
  const Input in({.shape = {5, 3}});
  const LayerOutput a = layers::LSTM(4, {.seed = seed})(in);
  const LayerOutput b = layers::Bidirectional(layers::GRU(2, {.seed = seed}))(in);
  const LayerOutput c = layers::BatchNormalization()(layers::Dense(4, {.seed = seed + 1})(a));
  Model model({in}, {layers::Dense(1, {.seed = seed + 2})(layers::Concatenate()({b, c}))});
  model.compile({.optimizer = optimizer, .loss = "mse"});
  return model;
}

TEST_F(Weights, AreKeptUnderTheKeysOfKeras) {
  Model model = make_model("adam", 1);
  model.save_weights(path("cp"));
  // By distance from the output: LSTM (4), Dense (3), then GRU and BatchNorm as a walk from the output meets them.
  std::vector<std::string> expected = {"_CHECKPOINTABLE_OBJECT_GRAPH"};
  for (const char* each : {"cell/bias", "cell/kernel", "cell/recurrent_kernel"})
    expected.push_back("layer_with_weights-0/" + std::string(each) + kValue);
  for (const char* each : {"bias", "kernel"}) expected.push_back("layer_with_weights-1/" + std::string(each) + kValue);
  for (const char* direction : {"backward_layer", "forward_layer"})
    for (const char* each : {"bias", "kernel", "recurrent_kernel"})
      expected.push_back("layer_with_weights-2/" + std::string(direction) + "/cell/" + each + kValue);
  for (const char* each : {"beta", "gamma", "moving_mean", "moving_variance"})
    expected.push_back("layer_with_weights-3/" + std::string(each) + kValue);
  for (const char* each : {"bias", "kernel"}) expected.push_back("layer_with_weights-4/" + std::string(each) + kValue);
  EXPECT_EQ(keys_of(path("cp")), expected);
  EXPECT_EQ(latest_checkpoint(directory_), path("cp"));
}

TEST_F(Weights, OfAttentionAndNestedModelsHaveTheirPlaces) {
  const Input inner({.shape = {4, 6}});
  Model part({inner}, {layers::MultiHeadAttention(2, 3)({inner, inner})});
  const Input in({.shape = {4, 6}});
  Model model({in}, {layers::Dense(1)(part(in))});
  model.save_weights(path("cp"));
  const std::vector<std::string> keys = keys_of(path("cp"));
  for (const char* each : {"_query_dense", "_key_dense", "_value_dense", "_output_dense"}) {
    const std::string key = "layer_with_weights-0/layer_with_weights-0/" + std::string(each) + "/kernel" + kValue;
    EXPECT_NE(std::find(keys.begin(), keys.end(), key), keys.end()) << key;
  }
}

TEST_F(Weights, ComeBackWithTheOptimizersState) {
  const Tensor x = random_normal({6, 5, 3}, {.seed = 1}), y = random_normal({6, 1}, {.seed = 2});
  const OptimizerChoice kinds[] = {
      "adam",
      "adamax",
      "adagrad",
      "adadelta",
      "sgd",
      optimizers::SGD({.momentum = 0.9}),
      optimizers::RMSprop({.momentum = 0.5, .centered = true}),
  };
  for (const OptimizerChoice& kind : kinds) {
    Model first = make_model(Optimizer(kind.get()->options()), 1);
    for (int i = 0; i < 3; ++i) first.train_on_batch(x, y);
    first.save_weights(path("cp"));
    Model second = make_model(Optimizer(kind.get()->options()), 7);
    second.load_weights(path("cp"));
    EXPECT_EQ(values_of(second), values_of(first));
    EXPECT_EQ(state_of(second), state_of(first));
    EXPECT_EQ(second.optimizer().step(), 3);
    EXPECT_EQ(second.train_on_batch(x, y)["loss"], first.train_on_batch(x, y)["loss"]);
  }
}

TEST_F(Weights, OldOptimizerStatesAndCheckpointsByNameAreRead) {
  Sequential model({layers::Dense(2, {.input_shape = {3}})});
  model.compile({.optimizer = "adam", .loss = "mse"});
  {
    BundleWriter writer(path("old"));
    writer.add("layer_with_weights-0/kernel" + kValue, full({3, 2}, 2.f));
    writer.add("layer_with_weights-0/bias" + kValue, full({2}, 3.f));
    writer.add("layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/m" + kValue, full({3, 2}, 4.f));
    writer.add("layer_with_weights-0/kernel/.OPTIMIZER_SLOT/optimizer/v" + kValue, full({3, 2}, 5.f));
    writer.add("optimizer/iter" + kValue, constant(std::int64_t{9}));
    writer.commit();
  }
  model.load_weights(path("old"));
  EXPECT_EQ(values_of(model), (std::vector<std::vector<float>>{std::vector<float>(6, 2.f), {3.f, 3.f}}));
  EXPECT_EQ(model.optimizer().step(), 9);
  EXPECT_EQ(state_of(model), (std::vector<std::vector<float>>{std::vector<float>(6, 4.f), std::vector<float>(6, 5.f)}));
  save_checkpoint(path("names"), std::vector<NamedTensor>{{"dense/kernel", zeros({3, 2})}, {"dense/bias", ones({2})}});
  model.load_weights(path("names"));
  EXPECT_EQ(values_of(model), (std::vector<std::vector<float>>{std::vector<float>(6, 0.f), {1.f, 1.f}}));
}

TEST_F(Weights, AFailedLoadChangesNothing) {
  const Tensor x = random_normal({6, 5, 3}, {.seed = 1}), y = random_normal({6, 1}, {.seed = 2});
  Model model = make_model("adam", 1), other = make_model("adam", 5);
  model.train_on_batch(x, y);
  other.train_on_batch(x, y);
  other.save_weights(path("cp"));
  const auto before = values_of(model), state = state_of(model);
  EXPECT_THROW(model.load_weights(path("absent")), NotFound);
  EXPECT_THROW(model.load_weights(path("weights.h5")), Unsupported);
  EXPECT_THROW(Sequential({layers::Dense(2)}).load_weights(path("cp")), FailedPrecondition);
  EXPECT_THROW(Sequential({layers::Dense(2)}).save_weights(path("cp")), FailedPrecondition);
  Sequential another({layers::Dense(2, {.input_shape = {3}, .name = "another"})});
  EXPECT_THROW(another.load_weights(path("cp")), NotFound);
  Sequential smaller({layers::LSTM(3, {.input_shape = {5, 3}})});
  EXPECT_THROW(smaller.load_weights(path("cp")), InvalidArgument);
  {
    const Budget tight("tight", 2048);
    const BudgetScope use(tight);
    EXPECT_THROW(model.load_weights(path("cp")), OutOfMemory);
  }
  const fs::path data = bundle_data_path(path("cp"), 0, 1);
  std::fstream file(data, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(data)) / 2);
  file.put('x').put('y').flush();
  EXPECT_THROW(model.load_weights(path("cp")), Corruption);
  fs::resize_file(data, 8);
  EXPECT_THROW(model.load_weights(path("cp")), Corruption);
  EXPECT_EQ(values_of(model), before);
  EXPECT_EQ(state_of(model), state);
  EXPECT_EQ(model.optimizer().step(), 1);
}

TEST_F(Weights, SavingAndLoadingLeaveNothingBehind) {
  Model model = make_model("adam", 1);
  model.train_on_batch(zeros({2, 5, 3}), zeros({2, 1}));
  const MemoryInfo before = memory();
  model.save_weights(path("cp"));
  model.load_weights(path("cp"));
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST_F(Weights, OfKerasItselfAreRead) {
  const fs::path real = fs::path(SHARED_DATA) /
                        "fetched/tf_checkpoint/tf_keras/tf_keras/mixed_precision/testdata/lso_ckpt_tf2.2/ckpt.index";
  if (!fs::exists(real)) GTEST_SKIP() << "no " << real;
  Sequential model({layers::Dense(2, {.input_shape = {2}})});
  model.load_weights(fs::path(real).replace_extension().string());
  const auto values = values_of(model);
  EXPECT_FLOAT_EQ(values[0][0], 9.2296848f);
  EXPECT_FLOAT_EQ(values[0][3], 9.7573624f);
  EXPECT_FLOAT_EQ(values[1][1], 9.9176912f);
}

TEST_F(Weights, SaysThatAFolderIsNoCheckpoint) {
  Sequential model({layers::Dense(1, {.input_shape = {2}})});
  const auto told = [&](const std::string& where) -> std::string {
    try {
      model.load_weights(where);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  fs::create_directories(path("empty"));
  EXPECT_NE(told(path("empty")).find("is a folder; give the name of a checkpoint in it, and it has none"),
            std::string::npos);
  model.save_weights(path("run/cp.ckpt"));
  EXPECT_NE(told(path("run")).find("its latest is \"" + path("run/cp.ckpt") + "\""), std::string::npos);
}

}  // namespace
}  // namespace plimsoll
