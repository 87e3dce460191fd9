// Ready-made callbacks: EarlyStopping, ReduceLROnPlateau, LearningRateScheduler, CSVLogger, and functions as callbacks.
//
//   model.fit(train, {.epochs = 100, .validation_data = test,
//                     .callbacks = {callbacks::EarlyStopping({.monitor = "val_loss", .patience = 3,
//                                                             .restore_best_weights = true}),
//                                   callbacks::CSVLogger("training.csv")}});
//
// What is monitored is better when it is smaller, or larger when its name ends in acc, accuracy or auc. A name that is
// not there is said once, as a warning, and otherwise ignored, as in Keras.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/callback.h"

namespace plimsoll {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int patience = 0;      // Epochs without an improvement that are borne.
  double min_delta = 0;  // What counts as one.
  bool restore_best_weights = false;
};
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  double min_delta = 1e-4;
  int cooldown = 0;  // Epochs after a change that are not counted.
  double min_lr = 0;
};

namespace callbacks {

// They throw InvalidArgument for factors and patiences that are none.
PLIMSOLL_API Callback EarlyStopping(const EarlyStoppingOptions& options = {});
PLIMSOLL_API Callback ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
// The learning rate of each epoch, from its number and the rate before.
PLIMSOLL_API Callback LearningRateScheduler(std::function<double(int epoch, double rate)> schedule);
// A line for each epoch, with a header. The file appears when training ends. Throws as AtomicFile does.
PLIMSOLL_API Callback CSVLogger(const std::string& path);
// Called at the end of each epoch, or of each batch.
PLIMSOLL_API Callback OnEpochEnd(std::function<void(Model& model, int epoch, const Logs& logs)> f);
PLIMSOLL_API Callback OnBatchEnd(std::function<void(Model& model, std::size_t batch, const Logs& logs)> f);

}  // namespace callbacks
}  // namespace plimsoll
