#include "plimsoll/model/training/callbacks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/progress.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/leak_check.h"

namespace plimsoll {
namespace {

Sequential make_model(double rate) {
  Sequential model({layers::Dense(1, {.use_bias = false, .input_shape = {1}, .kernel_initializer = "ones"})});
  model.compile({.optimizer = optimizers::SGD({.learning_rate = rate}), .loss = "mse"});
  return model;
}
Dataset data() { return Dataset::from_tensors(constant({{1.f}}), constant({{0.f}})).batch(1); }
float weight_of(const Model& model) { return model.weights()[0].value().item<float>(); }

TEST(Callbacks, EarlyStoppingEndsAndRestoresTheBest) {
  Sequential model = make_model(1.5);  // w becomes -2 w at each step: always worse.
  const History history = model.fit(
      data(),
      {.epochs = 10,
       .verbose = 0,
       .callbacks = {callbacks::EarlyStopping({.monitor = "loss", .patience = 2, .restore_best_weights = true})}});
  EXPECT_EQ(history.num_epochs(), 3u);
  EXPECT_EQ(weight_of(model), -2.f);  // After the first epoch.
}

TEST(Callbacks, EarlyStoppingHoldsNothingAfterwards) {
  Sequential model = make_model(0.1);
  const Dataset one = data();
  LeakCheck check;
  const Callback stop = callbacks::EarlyStopping({.monitor = "loss", .restore_best_weights = true});
  model.fit(one, {.epochs = 4, .verbose = 0, .callbacks = {stop}});
  check.expect_none();
}

TEST(Callbacks, SayWhatTheyDoWhenAsked) {
  const auto printed = [](Model model, int epochs, const Callback& callback) {
    testing::internal::CaptureStdout();
    model.fit(data(), {.epochs = epochs, .verbose = 0, .callbacks = {callback}});
    return testing::internal::GetCapturedStdout();
  };
  const EarlyStoppingOptions stop{.monitor = "loss", .patience = 2, .restore_best_weights = true, .verbose = 1};
  EXPECT_EQ(printed(make_model(1.5), 10, callbacks::EarlyStopping(stop)),
            "Epoch 3: early stopping\nRestored the weights of the best epoch: 1\n");
  EXPECT_EQ(
      printed(make_model(0.25), 2, callbacks::ReduceLROnPlateau({.monitor = "loss", .patience = 1, .verbose = 1})), "");
  EXPECT_EQ(printed(make_model(1e-12), 2,
                    callbacks::ReduceLROnPlateau({.monitor = "loss", .factor = 0.5, .patience = 1, .verbose = 1})),
            "Epoch 2: the learning rate is now 5e-13\n");
  std::string pattern = (std::filesystem::temp_directory_path() / "say_XXXXXX").string();
  const std::string folder = mkdtemp(pattern.data());
  EXPECT_EQ(printed(make_model(0.1), 2,
                    callbacks::ModelCheckpoint(folder + "/cp-{epoch}", {.save_weights_only = true, .verbose = 1})),
            "Epoch 1: saved the model to " + folder + "/cp-1\nEpoch 2: saved the model to " + folder + "/cp-2\n");
  std::filesystem::remove_all(folder);
}

TEST(Callbacks, EpochsCountFromTheInitialOne) {
  Sequential model = make_model(0.1);
  std::vector<int> epochs;
  const History history = model.fit(
      data(), {.epochs = 5,
               .verbose = 0,
               .callbacks = {callbacks::OnEpochEnd([&](Model&, int epoch, const Logs&) { epochs.push_back(epoch); })},
               .initial_epoch = 3});
  EXPECT_EQ(epochs, (std::vector<int>{3, 4}));
  EXPECT_EQ(history.num_epochs(), 2u);
  EXPECT_THROW(model.fit(data(), {.initial_epoch = -1}), InvalidArgument);
}

TEST(Callbacks, ReducesTheRateOnAPlateau) {
  Sequential model = make_model(1e-12);
  model.fit(data(), {.epochs = 5,
                     .verbose = 0,
                     .callbacks = {callbacks::ReduceLROnPlateau({.monitor = "loss", .factor = 0.5, .patience = 2})}});
  EXPECT_DOUBLE_EQ(model.optimizer().learning_rate(), 0.25e-12);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.factor = 2}), InvalidArgument);
  EXPECT_THROW(callbacks::EarlyStopping({.patience = -1}), InvalidArgument);
}

TEST(Callbacks, SchedulesTheRate) {
  Sequential model = make_model(0.1);
  std::vector<double> rates;
  model.fit(data(),
            {.epochs = 3, .verbose = 0, .callbacks = {callbacks::LearningRateScheduler([&](int epoch, double rate) {
                                          rates.push_back(rate);
                                          return 0.1 / (epoch + 1);
                                        })}});
  EXPECT_EQ(rates, (std::vector<double>{0.1, 0.1, 0.05}));
}

TEST(Callbacks, WritesCsv) {
  const auto path =
      std::filesystem::temp_directory_path() / ("plimsoll_callbacks_test_" + std::to_string(getpid()) + ".csv");
  make_model(0.5).fit(data(), {.epochs = 2, .verbose = 0, .callbacks = {callbacks::CSVLogger(path.string())}});
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "epoch,loss\n0,1\n1,0\n");
  std::filesystem::remove(path);
}

TEST(Callbacks, CanStopAndThrow) {
  Sequential model = make_model(0.1);
  const History history = model.fit(
      data(),
      {.epochs = 9, .verbose = 0, .callbacks = {callbacks::OnEpochEnd([](Model& m, int epoch, const Logs& logs) {
                                    EXPECT_GT(logs["loss"], 0);
                                    if (epoch == 2) m.stop_training();
                                  })}});
  EXPECT_EQ(history.num_epochs(), 3u);
  EXPECT_THROW(
      model.fit(data(), {.verbose = 0, .callbacks = {callbacks::OnBatchEnd([](Model&, std::size_t, const Logs&) {
                                         throw NotFound("x");
                                       })}}),
      NotFound);
}

TEST(Callbacks, FitIsStoppedFromAnotherThread) {
  Sequential model = make_model(0.001);
  std::atomic<bool> running{false};
  std::thread other([&] {
    while (!running) std::this_thread::yield();
    model.stop_training();
  });
  const Callback tell = callbacks::OnBatchEnd([&](Model&, std::size_t, const Logs&) { running = true; });
  const History history = model.fit(data().repeat(), {.epochs = 1, .verbose = 0, .callbacks = {tell}});
  other.join();
  EXPECT_EQ(history.num_epochs(), 1u);
}

TEST(Progress, ShowsABarNumbersAndMemory) {
  EXPECT_EQ(Progress::bar(5, 10), "5/10 [===============>..............]");
  EXPECT_EQ(Progress::bar(10, 10), "10/10 [==============================]");
  EXPECT_EQ(Progress::bar(3, std::nullopt), "3/?");
  EXPECT_EQ(Progress::line(5, 10, " - loss 0.5", 200), Progress::bar(5, 10) + " - loss 0.5");
  EXPECT_EQ(Progress::line(5, 10, " - loss 0.5", 28), "5/10 [=====>....] - loss 0.5");
  EXPECT_EQ(Progress::line(5, 10, " - loss 0.5", 20), "5/10 [==>..] - loss ");
  Logs logs;
  logs.set("loss", 0.25f);
  EXPECT_EQ(Progress::numbers(logs), " - loss 0.2500");
  EXPECT_EQ(Progress::gauge(1 << 20, 64 << 20, 2 << 20), "1.0 of 64.0 MiB, peak 2.0");
  EXPECT_EQ(Progress::gauge(512, 0, 2048), "512 B, peak 2.0 KiB");
  EXPECT_EQ(Progress::gauge(12 << 10, 1 << 20, 600 << 10), "12.0 KiB of 1.0 MiB, peak 600.0 KiB");
  EXPECT_EQ(Progress::gauge(0, 1 << 20, 1 << 20), "0 B of 1.0 MiB, peak 1.0");
}

TEST(Progress, WritesALineForEachEpochWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  Logs logs;
  logs.set("loss", 0.5f);
  Progress progress({.verbose = 1, .epochs = 2, .batches = 3, .device = "CPU:0", .to = file});
  progress.begin_epoch(1);
  progress.batch_ended(1, logs);
  progress.end_epoch(3, logs);
  std::rewind(file);
  char line[256] = {};
  EXPECT_NE(std::fgets(line, sizeof line, file), nullptr);
  EXPECT_EQ(std::string(line).rfind("Epoch 2/2 - 0s - loss 0.5000 - ", 0), 0u) << line;
  EXPECT_EQ(std::fgets(line, sizeof line, file), nullptr);
  std::fclose(file);
}

}  // namespace
}  // namespace plimsoll
