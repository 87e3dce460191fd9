// Ready-made callbacks: ModelCheckpoint, EarlyStopping, ReduceLROnPlateau, LearningRateScheduler, TensorBoard,
// CSVLogger, and functions as callbacks.
//
//   model.fit(train, {.epochs = 100, .validation_data = test,
//                     .callbacks = {callbacks::EarlyStopping({.monitor = "val_loss", .patience = 3,
//                                                             .restore_best_weights = true}),
//                                   callbacks::CSVLogger("training.csv")}});
//
// A monitored value is better when it is smaller, or larger when its name ends in acc, accuracy or auc. A name that
// does not exist is logged once as a warning, and otherwise ignored, as in Keras. A callback may be used for several
// fits, one after the other.
#pragma once

#include <functional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/training/callback.h"

namespace plimsoll {

namespace callbacks {

struct ModelCheckpointOptions {
  std::string monitor = "val_loss";
  bool save_best_only = false;     // Only when the monitored value has improved.
  bool save_weights_only = false;  // Otherwise a Layers model with the optimizer's state, in a folder of that name.
  int save_freq = 0;               // In batches, counted over all epochs; 0: after each epoch.
  int verbose = 0;                 // 1: a line on standard output for each save.
};
struct TensorBoardOptions {
  int histogram_freq = 0;   // Of weights, every so many epochs; 0: never.
  bool write_graph = true;  // The model's layers.
  bool memory = true;       // Bytes in use and their peak, beside the metrics.
  int update_freq = 0;      // Also metrics of batches, every so many; 0: only of epochs.
};
struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  int patience = 0;      // Epochs without an improvement before it stops.
  double min_delta = 0;  // The smallest change that counts as an improvement.
  bool restore_best_weights = false;
  int verbose = 0;  // 1: a line on standard output when it ends the training or restores weights.
};
struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  double min_delta = 1e-4;
  int cooldown = 0;  // Epochs after a change that do not count.
  double min_lr = 0;
  int verbose = 0;  // 1: a line on standard output when it lowers the rate.
};

// They throw InvalidArgument for invalid factors and patiences. The path may contain numbers as in Python's str.format:
// "training/cp-{epoch:04d}-{val_loss:.2f}.ckpt"; epochs and {batch} count from 1. Throws InvalidArgument for a name
// that does not exist, and as save_weights and save_layers_model.
PLIMSOLL_API Callback ModelCheckpoint(const std::string& path, const ModelCheckpointOptions& options = {});
// Writes event files as Keras does: LOG_DIR/train and LOG_DIR/validation, scalars "epoch_loss" and so on.
PLIMSOLL_API Callback TensorBoard(const std::string& log_dir = "logs", const TensorBoardOptions& options = {});
PLIMSOLL_API Callback EarlyStopping(const EarlyStoppingOptions& options = {});
PLIMSOLL_API Callback ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
// Sets the learning rate of each epoch, from its number and the previous rate.
PLIMSOLL_API Callback LearningRateScheduler(std::function<double(int epoch, double rate)> schedule);
// Writes a line per epoch, with a header. The file appears when training ends. Throws as AtomicFile does.
PLIMSOLL_API Callback CSVLogger(const std::string& path);
// Called at the end of each epoch, or of each batch.
PLIMSOLL_API Callback OnEpochEnd(std::function<void(Model& model, int epoch, const Logs& logs)> f);
PLIMSOLL_API Callback OnBatchEnd(std::function<void(Model& model, std::size_t batch, const Logs& logs)> f);

}  // namespace callbacks

// Also without the namespace, as in earlier versions.
using callbacks::EarlyStoppingOptions;
using callbacks::ModelCheckpointOptions;
using callbacks::ReduceLROnPlateauOptions;
using callbacks::TensorBoardOptions;

}  // namespace plimsoll
