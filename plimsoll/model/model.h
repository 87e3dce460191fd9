// Model, Sequential: layers that are trained and used together.
//
//   Sequential model({layers::Dense(16, {.activation = "relu", .input_shape = {10}}), layers::Dense(1)});
//   model.compile({.optimizer = optimizers::Adam(), .loss = losses::MeanSquaredError(), .metrics = {"mae"}});
//   History h = model.fit(train, {.epochs = 10, .validation_data = test});
//   model.evaluate(test)["loss"]; Tensor y = model.predict(x);
//
//   Input a({.shape = {4}}), b({.shape = {6}});                          // Or described by its inputs and outputs:
//   Model two({a, b}, {layers::Dense(1)(layers::Concatenate()({a, b}))});
//
// A model is a layer, and a handle: copies are the same model. fit, evaluate and predict keep nothing but what they
// return; the first step makes the optimizer's state. A step that fails (OutOfMemory, std::bad_alloc) leaves weights,
// state, statistics, metrics and random draws unchanged; one that has succeeded returns its logs. Thread safety:
// predict from any number of threads once the model is built; training, one thread at a time, and not concurrently with
// predict; stop_training from any thread.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/distributed/job.h"
#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/training/callback.h"
#include "plimsoll/model/training/forecast.h"
#include "plimsoll/model/training/logs.h"
#include "plimsoll/model/training/losses.h"
#include "plimsoll/model/training/metrics.h"
#include "plimsoll/model/training/optimizers.h"

namespace plimsoll {
namespace internal {
class Network;
}  // namespace internal

struct CompileOptions {
  OptimizerChoice optimizer = {};  // Default: "rmsprop", as in Keras.
  LossList loss = {};              // One, or one for each output.
  std::vector<Metric> metrics = {};
  std::vector<double> loss_weights = {};  // For each output; default: 1.
  double clip_norm = 0;                   // Per gradient; 0: no clipping.
  double clip_value = 0;                  // Per element.
  double global_clip_norm = 0;            // Of all gradients together.
  bool run_eagerly = false;               // Steps and predictions run op by op, without a plan.
};

struct FitOptions {
  int epochs = 1;
  std::size_t batch_size = 32;  // For tensors; datasets are already batched.
  Dataset validation_data = {};
  double validation_split = 0;  // For tensors: the last part of them is not trained on.
  int verbose = 1;              // 0: silent; 1: a bar on terminals; 2: a line per epoch.
  bool shuffle = true;          // For tensors.
  std::vector<Callback> callbacks = {};
  // In bytes, counted as in a forecast of the dataset. Steps that need more recompute values, with the same bits.
  // Refused (OutOfMemory) before the first step when that is not enough.
  std::optional<std::size_t> budget = {};
  std::map<std::int64_t, double> class_weights = {};  // By label; others count 1.
  // A directory on a disk, not in memory. Values that the budget has no room for may be stored there; an error without
  // a budget. The space for the steps is reserved before the first one, and nothing is left there.
  std::string spill = {};
  distributed::TrainingOptions distributed = {};  // The processes that train together (docs/distributed.md).
  double max_slowdown = 8;  // A budget in which steps are predicted to be slower by more than this factor is refused.
  int initial_epoch = 0;    // Continues a training: epochs count from here, and `epochs` is the number of the last one.
};

struct BatchSizeOptions {
  std::size_t batch_size = 32;             // For tensors; datasets are already batched.
  std::optional<std::size_t> budget = {};  // As in FitOptions, for weights, a batch, the step, and all results.
  std::string spill = {};                  // As in FitOptions.
};

struct ModelOptions {
  std::string name = {};
};

class PLIMSOLL_API Model : public Layer {
 public:
  // From inputs to outputs. Throws InvalidArgument when they are not connected and for layers of the same name.
  Model(const std::vector<LayerOutput>& inputs, const std::vector<LayerOutput>& outputs,
        const ModelOptions& options = {});
  explicit Model(std::shared_ptr<Network> network);

  // Throws InvalidArgument unless there is one loss or one for each output.
  void compile(const CompileOptions& options);

  // They throw FailedPrecondition before compile(), InvalidArgument for data that does not fit, and what the steps and
  // callbacks throw.
  History fit(const Dataset& data, const FitOptions& options = {});
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {});
  Logs evaluate(const Dataset& data, const BatchSizeOptions& options = {}) const;
  Logs evaluate(const Tensor& x, const Tensor& y, const BatchSizeOptions& options = {}) const;
  Logs train_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights = {});
  Logs train_on_batch(const Example& batch);
  Logs test_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights = {}) const;
  Logs test_on_batch(const Example& batch) const;

  // In batches; the caller owns the result. predict() is for models with one input and one output, predict_all() for
  // all others. Throws Disposed and InvalidArgument.
  Tensor predict(const Tensor& x, const BatchSizeOptions& options = {}) const;
  std::vector<Tensor> predict_all(const std::vector<Tensor>& inputs, const BatchSizeOptions& options = {}) const;

  // The memory of a training step with batches of this size, or of this kind: forecast.h. Throw FailedPrecondition
  // before compile(), and when the input's sizes are not known.
  MemoryForecast forecast(const ForecastOptions& options = {}) const;
  MemoryForecast forecast(const Example& batch) const;
  // Includes what a pass over these batches holds besides one (shuffle, prefetch). Loads the first batch.
  MemoryForecast forecast(const Dataset& batches) const;
  // The largest batch with which training fits, at most 2^30; 0 when none does. With a `max_slowdown` of 1: without
  // recomputing.
  std::size_t max_batch_size(std::size_t bytes, double max_slowdown = 8, const std::string& spill = {}) const;

  // Prints layers, shapes, parameters and their bytes. Throws FailedPrecondition before shapes are known.
  void summary() const;  // To standard output.
  void summary(std::ostream& out) const;

  // Writes a checkpoint in Keras' format: each library's load_weights reads the other's. Includes the optimizer's state
  // if there is one. Creates the folder, whose `checkpoint` file then names it (latest_checkpoint). Throws
  // FailedPrecondition for a model without weights, Unsupported for names of HDF5 files, Error when the disk refuses.
  void save_weights(const std::string& path) const;
  // Restores the optimizer's state too, when the file has it and the model is compiled with that optimizer. Checkpoints
  // of TensorFlow 1 are read by the names of variables. Throws NotFound for a missing file or weights, InvalidArgument
  // for other shapes, Corruption; then nothing has changed. FailedPrecondition for a model without weights yet.
  void load_weights(const std::string& path) const;

  // Of its inputs and outputs, including the batch, unknown sizes -1. Throw FailedPrecondition before shapes are known.
  Shapes input_shapes() const;
  Shapes output_shapes() const;
  std::vector<DType> input_dtypes() const;
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;  // Of the output layers.
  bool is_compiled() const noexcept;
  bool loss_takes_labels() const;  // Whether the first loss takes class numbers. FailedPrecondition before compile().

  void stop_training() const noexcept;  // Ends a running fit after its current step, including epoch callbacks.
  bool is_built() const noexcept;
  std::vector<Layer> layers() const;
  Layer layer(std::string_view name) const;  // Throws NotFound, naming those that exist.
  const Optimizer& optimizer() const;        // Throws FailedPrecondition before compile().
  void reset_states() const;                 // Sets the states of stateful recurrent layers to zeros.

  Network& network() const noexcept { return *network_; }

 protected:
  std::shared_ptr<Network> network_;
};

class PLIMSOLL_API Sequential : public Model {
 public:
  explicit Sequential(const ModelOptions& options = {});
  Sequential(std::initializer_list<Layer> layers, const ModelOptions& options = {});
  explicit Sequential(const std::vector<Layer>& layers, const ModelOptions& options = {});
  // Throws InvalidArgument for a layer that does not accept the last one's output; the model is then unchanged.
  void add(const Layer& layer);
};

}  // namespace plimsoll
