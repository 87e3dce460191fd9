// Model, Sequential: layers that are trained and asked together.
//
//   Sequential model({layers::Dense(16, {.activation = "relu", .input_shape = {10}}), layers::Dense(1)});
//   model.compile({.optimizer = optimizers::Adam(), .loss = losses::MeanSquaredError(), .metrics = {"mae"}});
//   History h = model.fit(train, {.epochs = 10, .validation_data = test});
//   model.evaluate(test)["loss"]; Tensor y = model.predict(x);
//
//   Input a({.shape = {4}}), b({.shape = {6}});                          // Or described by its ends:
//   Model two({a, b}, {layers::Dense(1)(layers::Concatenate()({a, b}))});
//
// A model is a layer, and a handle: copies are the same model. fit, evaluate and predict leave nothing behind but what
// they return; the first step makes the optimizer's state. A step that fails (OutOfMemory, std::bad_alloc) leaves
// weights, state, statistics, metrics and random draws as they were; one that has happened returns its logs.
// Thread safety: predict from any thread at once, when the model is built; what trains, one at a time, and not beside
// predict; stop_training from any.
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
  std::vector<double> loss_weights = {};  // For each output; left out: 1.
  double clip_norm = 0;                   // Of each gradient; 0: as it is.
  double clip_value = 0;                  // Of each element of one.
  double global_clip_norm = 0;            // Of all gradients together.
  bool run_eagerly = false;               // Steps and predictions run op by op, without a plan.
};

struct FitOptions {
  int epochs = 1;
  std::size_t batch_size = 32;  // Of tensors; datasets are batched already.
  Dataset validation_data = {};
  double validation_split = 0;  // Of tensors: the last part of them, not trained on.
  int verbose = 1;              // 0: silent; 1: a bar on terminals; 2: a line for each epoch.
  bool shuffle = true;          // Of tensors.
  std::vector<Callback> callbacks = {};
  // Bytes, as a forecast of the dataset counts them. Steps that need more recompute values, and give the same bits.
  // Refused (OutOfMemory) before the first step when that does not suffice either.
  std::optional<std::size_t> budget = {};
  std::map<std::int64_t, double> class_weights = {};  // By label; others count 1.
  // A directory on a disk, not in memory. Values that the budget has no room for may be stored there; without a budget
  // it is an error. What the steps store is reserved before the first one, and nothing is left there.
  std::string spill = {};
  distributed::TrainingOptions distributed = {};  // The processes that train together (docs/distributed.md).
  double max_slowdown = 8;  // A budget in which steps are predicted to take longer, by this factor, is refused.
  int initial_epoch = 0;    // Continues a training: epochs count from here, and `epochs` is the last one's number.
};

struct BatchSizeOptions {
  std::size_t batch_size = 32;             // Of tensors; datasets are batched already.
  std::optional<std::size_t> budget = {};  // As that of FitOptions, for weights, a batch, the step, and all results.
  std::string spill = {};                  // As that of FitOptions.
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

  // Throws InvalidArgument for as many losses as are neither one nor one for each output, and for no loss.
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

  // In batches; the result is the caller's. Throws Disposed and InvalidArgument.
  Tensor predict(const Tensor& x, const BatchSizeOptions& options = {}) const;
  std::vector<Tensor> predict_all(const std::vector<Tensor>& inputs, const BatchSizeOptions& options = {}) const;

  // What a step of training takes with batches of this size, or of this kind: forecast.h. Throw FailedPrecondition
  // before compile(), and when the input's sizes are not known.
  MemoryForecast forecast(const ForecastOptions& options = {}) const;
  MemoryForecast forecast(const Example& batch) const;
  // With what a pass over these batches holds beside one (shuffle, prefetch). Loads the first batch.
  MemoryForecast forecast(const Dataset& batches) const;
  // The largest batch with which training fits, at most 2^30; 0 when none does. With 1 as `max_slowdown`: without
  // recomputing.
  std::size_t max_batch_size(std::size_t bytes, double max_slowdown = 8, const std::string& spill = {}) const;

  // Layers, shapes, parameters and the bytes they take. Throws FailedPrecondition before shapes are known.
  void summary() const;  // To standard output.
  void summary(std::ostream& out) const;

  // A checkpoint in Keras' form: its load_weights takes ours, ours takes its. With the optimizer's state when there is
  // some. Makes the folder, whose `checkpoint` file then names it (latest_checkpoint). Throws FailedPrecondition for a
  // model without weights, Unsupported for names of HDF5 files, Error when the disk refuses.
  void save_weights(const std::string& path) const;
  // The optimizer's state too, when the file has it and the model is compiled with that optimizer. Names of variables
  // do for checkpoints of TensorFlow 1. Throws NotFound for a file or weights that are not there, InvalidArgument for
  // other shapes, Corruption; then nothing has changed. FailedPrecondition for a model without weights yet.
  void load_weights(const std::string& path) const;

  // Of its ends, with the batch in front and unknown sizes -1. Throw FailedPrecondition before shapes are known.
  Shapes input_shapes() const;
  Shapes output_shapes() const;
  std::vector<DType> input_dtypes() const;
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;  // Of the layers that give them.
  bool is_compiled() const noexcept;
  bool loss_takes_labels() const;  // That of the first output: numbers of classes. FailedPrecondition before compile().

  void stop_training() const noexcept;  // A fit that runs ends after its present step, epoch callbacks included.
  bool is_built() const noexcept;
  std::vector<Layer> layers() const;
  Layer layer(std::string_view name) const;  // Throws NotFound, naming those there are.
  const Optimizer& optimizer() const;        // Throws FailedPrecondition before compile().
  void reset_states() const;                 // Of stateful recurrent layers: to zeros.

  Network& network() const noexcept { return *network_; }

 protected:
  std::shared_ptr<Network> network_;
};

class PLIMSOLL_API Sequential : public Model {
 public:
  explicit Sequential(const ModelOptions& options = {});
  Sequential(std::initializer_list<Layer> layers, const ModelOptions& options = {});
  explicit Sequential(const std::vector<Layer>& layers, const ModelOptions& options = {});
  // Throws InvalidArgument for a layer that does not take what the last one gives; the model is then as before.
  void add(const Layer& layer);
};

}  // namespace plimsoll
