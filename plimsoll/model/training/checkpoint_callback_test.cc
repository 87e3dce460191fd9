#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/io/event_reader.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

class Recording : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(directory_); }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  History fit(Model model, int epochs, const Callback& callback, bool validate = true) const {
    const Dataset data = Dataset::from_tensors(constant({{1.f}, {2.f}}), constant({{0.f}, {0.f}})).batch(1);
    return model.fit(
        data,
        {.epochs = epochs, .validation_data = validate ? data : Dataset(), .verbose = 0, .callbacks = {callback}});
  }
  static Sequential make_model(double rate) {
    Sequential model({layers::Dense(1, {.use_bias = false, .input_shape = {1}, .kernel_initializer = "ones"})});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = rate}), .loss = "mse"});
    return model;
  }

  fs::path directory_ = fs::temp_directory_path() / ("plimsoll_checkpoint_callback_test_" + std::to_string(getpid()));
};

using ModelCheckpointTest = Recording;
using TensorBoardTest = Recording;
using GrowthTest = Recording;

TEST_F(ModelCheckpointTest, RemovesWhatAKilledFitLeft) {
  fs::create_directories(directory_);
  for (const char* name : {"cp-0007.ckpt.data-00000-of-00001", "cp-0008.ckpt.index.tmp-1-0",
                           "cp-0008.ckpt.data-00000-of-00001.tmp-1-1", "other.data-00000-of-00001", "cp-notes.txt"})
    std::ofstream(path(name)) << "left behind";
  fit(make_model(0), 1, callbacks::ModelCheckpoint(path("cp-{epoch:04d}.ckpt"), {.save_weights_only = true}));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_)) names.insert(entry.path().filename());
  EXPECT_EQ(names, (std::set<std::string>{"checkpoint", "cp-0001.ckpt.data-00000-of-00001", "cp-0001.ckpt.index",
                                          "cp-notes.txt", "other.data-00000-of-00001"}));
}

TEST_F(ModelCheckpointTest, NamesFilesByNumbers) {
  Sequential model = make_model(0);
  fit(model, 2, callbacks::ModelCheckpoint(path("cp-{epoch:04d}-{val_loss:.2f}.ckpt"), {.save_weights_only = true}));
  EXPECT_TRUE(fs::exists(path("cp-0001-2.50.ckpt.index")));
  EXPECT_EQ(latest_checkpoint(directory_), path("cp-0002-2.50.ckpt"));
  const auto steps = model.optimizer().step();  // A pattern that cannot be filled in is found before the first one.
  EXPECT_THROW(fit(model, 1, callbacks::ModelCheckpoint(path("cp-{val_auc}.ckpt"), {.save_weights_only = true})),
               InvalidArgument);
  EXPECT_THROW(
      fit(model, 1, callbacks::ModelCheckpoint(path("cp-{val_loss}.ckpt"), {.save_weights_only = true}), false),
      InvalidArgument);
  EXPECT_THROW(fit(model, 1, callbacks::ModelCheckpoint(path("cp-{val_loss}"), {.save_freq = 1})), InvalidArgument);
  EXPECT_THROW(fit(model, 1, callbacks::ModelCheckpoint(path("cp-{epoch"))), InvalidArgument);
  EXPECT_EQ(model.optimizer().step(), steps);
  EXPECT_THROW(callbacks::ModelCheckpoint(""), InvalidArgument);
  EXPECT_THROW(callbacks::ModelCheckpoint("a", {.save_freq = -1}), InvalidArgument);
}

TEST_F(ModelCheckpointTest, KeepsTheBestOnly) {
  Sequential model = make_model(1.5);  // Worse with each step.
  fit(model, 3,
      callbacks::ModelCheckpoint(path("cp-{epoch}"),
                                 {.monitor = "val_loss", .save_best_only = true, .save_weights_only = true}));
  EXPECT_TRUE(fs::exists(path("cp-1.index")));
  EXPECT_FALSE(fs::exists(path("cp-2.index")));
}

TEST_F(ModelCheckpointTest, SavesWholeModelsAndByBatches) {
  Sequential model = make_model(0.01);
  fit(model, 2, callbacks::ModelCheckpoint(path("model-{epoch}-{batch}"), {.save_freq = 3}));
  EXPECT_FALSE(fs::exists(path("model-1-2")));
  Model again = load_layers_model(path("model-2-1/model.json"));
  EXPECT_EQ(again.optimizer().step(), 3);
}

struct Scalars : std::vector<std::string> {
  explicit Scalars(const fs::path& directory) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      EventReader events(entry.path());
      while (const auto event = events.next()) {
        if (!event->graph.empty()) nodes = summarize_graph(event->graph).names;
        for (const EventValue& value : event->values)
          push_back(value.tag + " " + std::to_string(event->step) + " " + value.kind);
      }
    }
  }
  bool has(const std::string& text) const { return std::find(begin(), end(), text) != end(); }
  std::vector<std::string> nodes;
};

TEST_F(TensorBoardTest, AFitThatIsRefusedLeavesNoFiles) {
  Sequential model = make_model(0.01);
  const Dataset data = Dataset::from_tensors(constant({{1.f}}), constant({{0.f}})).batch(1);
  EXPECT_THROW(
      model.fit(data, {.verbose = 0,
                       .callbacks = {callbacks::TensorBoard(path("logs")), callbacks::CSVLogger(path("log.csv"))},
                       .budget = 1}),
      OutOfMemory);
  EXPECT_FALSE(fs::exists(path("logs")));
  EXPECT_FALSE(fs::exists(path("log.csv")));
}

TEST_F(TensorBoardTest, WritesWhatKerasWrites) {
  Sequential model = make_model(0.01);
  LeakCheck check;
  fit(model, 2, callbacks::TensorBoard(path("logs"), {.histogram_freq = 1, .update_freq = 2}));
  check.expect_none();
  const Scalars train(path("logs/train")), validation(path("logs/validation"));
  EXPECT_TRUE(train.has("epoch_loss 1 scalar"));
  EXPECT_TRUE(train.has("epoch_learning_rate 0 scalar"));
  EXPECT_TRUE(train.has("epoch_memory_peak_bytes 1 scalar"));
  EXPECT_TRUE(train.has("batch_loss 4 scalar"));
  EXPECT_TRUE(train.has("dense/kernel 1 histogram"));
  EXPECT_TRUE(validation.has("epoch_loss 1 scalar"));
  EXPECT_EQ(train.nodes, (std::vector<std::string>{"sequential/dense_input", "sequential/dense"}));
  EXPECT_THROW(callbacks::TensorBoard(""), InvalidArgument);
}

// What the log was told while it lives.
class LogCapture {
 public:
  LogCapture() : before_(set_log_sink([this](LogLevel, std::string_view text) { lines_.emplace_back(text); })) {}
  ~LogCapture() { set_log_sink(before_); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  LogSink before_;
};

TEST_F(GrowthTest, IsToldOnceWithWhatMadeIt) {
  Sequential model = make_model(0.01);
  const Tensor x = ones({64, 1});
  std::vector<Tensor> losses;
  const LogCapture log;
  const History history =
      model.fit(Dataset::from_tensors(x, x).batch(1).repeat(4),
                {.epochs = 1, .verbose = 0, .callbacks = {callbacks::OnBatchEnd([&](Model&, std::size_t, const Logs&) {
                                              const NameScope scope("kept");
                                              losses.push_back(relu(x));
                                            })}});
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_EQ(log.lines()[0], history.growth());
  EXPECT_NE(history.growth().find("80 steps"), std::string::npos) << history.growth();
  EXPECT_NE(history.growth().find("relu in scope \"kept"), std::string::npos) << history.growth();
  EXPECT_NE(history.growth().find("activations"), std::string::npos) << history.growth();
}

TEST_F(GrowthTest, FromEpochToEpochIsToldToo) {
  Sequential model = make_model(0.01);
  const Tensor x = ones({40, 1});
  std::vector<Tensor> kept;
  const LogCapture log;
  const History history =
      model.fit(Dataset::from_tensors(x, x).batch(1),
                {.epochs = 9, .verbose = 0, .callbacks = {callbacks::OnEpochEnd([&](Model&, int, const Logs&) {
                                              kept.push_back(zeros({100}));
                                            })}});
  EXPECT_EQ(log.lines().size(), 1u);
  EXPECT_NE(history.growth().find("epochs"), std::string::npos) << history.growth();
}

TEST_F(GrowthTest, IsNotSeenWhereMemoryStays) {
  Sequential model = make_model(0.01);
  const Tensor x = random_normal({100, 1}, {.seed = 1});
  const LogCapture log;
  const History history = model.fit(
      Dataset::from_tensors(x, x).shuffle(100).batch(7).prefetch(4),
      {.epochs = 30,
       .verbose = 0,
       .callbacks = {callbacks::EarlyStopping({.monitor = "loss", .patience = 40, .restore_best_weights = true})}});
  EXPECT_EQ(history.growth(), "");
  EXPECT_TRUE(log.lines().empty());
}

}  // namespace
}  // namespace plimsoll
