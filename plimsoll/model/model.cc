#include "plimsoll/model/model.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/model/data/counted.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/training/planned_memory.h"
#include "plimsoll/model/training/train_step.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

std::vector<Loss> losses_for(const Network& network, const std::vector<Loss>& given, std::size_t outputs) {
  if (given.empty())
    throw InvalidArgument(fmt::format("compile: model \"{}\" is given no loss; name one", network.name()));
  if (given.size() == outputs) return given;
  if (given.size() == 1) return std::vector<Loss>(outputs, given[0]);
  throw InvalidArgument(fmt::format("compile: {} for the {} of model \"{}\"; give one or one for each",
                                    given.size() == 1 ? "1 loss" : fmt::format("{} losses", given.size()),
                                    counted(outputs, "output"), network.name()));
}

// A result that is its caller's alone: not a tensor that was given, nor one of the model's.
Tensor own(const Tensor& result, const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs)
    if (input.record() == result.record()) return result.reshape(result.shape());
  return result;
}

Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
  return count == tensor.shape()[0] ? tensor : tensor.slice({begin}, {count});
}

// What batches give for one output: rows of one tensor or, where the first axis counts something else, tensors.
struct Collected {
  Tensor whole;
  std::vector<Tensor> parts;

  void add(Tensor& part, std::int64_t begin, std::int64_t rows, std::int64_t count) {
    if (part.rank() == 0 || part.shape()[0] != rows) {
      parts.push_back(part);
      return;
    }
    if (whole.is_empty_handle()) {
      std::vector<std::int64_t> sizes(part.shape().begin(), part.shape().end());
      sizes[0] = count;
      whole = make_tensor({.op = "predict"}, Shape(sizes), part.dtype(), device_of(part));
    }
    const std::size_t offset = part.nbytes() / static_cast<std::size_t>(rows) * static_cast<std::size_t>(begin);
    copy(part.view(), TensorView(writable(whole).bytes(), offset, part.dtype(), part.shape()));
    part.dispose();
  }
  Tensor all() const { return parts.empty() ? whole : concat(parts, 0); }
};

}  // namespace

CallbackBase::~CallbackBase() = default;

Callback::Callback(std::shared_ptr<CallbackBase> base) : base_(std::move(base)) {
  if (!base_) throw InvalidArgument("Callback: there is none behind it; give one, or leave it out");
}

Model::Model(const std::vector<LayerOutput>& inputs, const std::vector<LayerOutput>& outputs,
             const ModelOptions& options)
    : Model(std::make_shared<Network>(inputs, outputs, options.name)) {}

Model::Model(std::shared_ptr<Network> network) : Layer(network), network_(std::move(network)) {}

void Model::compile(const CompileOptions& options) const {
  const std::size_t outputs = network_->is_connected() ? network_->output_slots().size() : 1;
  std::vector<Loss> losses = losses_for(*network_, options.loss.list(), outputs);
  std::vector<double> weights = options.loss_weights.empty() ? std::vector<double>(outputs, 1.0) : options.loss_weights;
  if (weights.size() != outputs)
    throw InvalidArgument(fmt::format("compile: {} for the {} of model \"{}\"; give one for each",
                                      counted(weights.size(), "loss weight"), counted(outputs, "output"), name()));
  std::vector<std::vector<Metric>> metrics(outputs);
  const std::vector<std::string> names =
      network_->is_connected() ? network_->output_names() : std::vector<std::string>(1);
  for (std::size_t i = 0; i < outputs; ++i)
    for (const Metric& metric : options.metrics)
      metrics[i].push_back(outputs == 1 ? metric : metric.clone(names[i] + "_" + metric.name()));
  Training& training = network_->training;
  training.optimizer = options.optimizer.get() ? *options.optimizer.get() : optimizers::RMSprop();
  training.losses = std::move(losses);
  training.loss_weights = std::move(weights);
  training.metrics = std::move(metrics);
  training.given_metrics = options.metrics;
  training.clipping = {options.clip_norm, options.clip_value, options.global_clip_norm};
  training.run_eagerly = options.run_eagerly;
  training.planned.clear();
}

Logs Model::train_on_batch(const Example& batch) const {
  StepMeans means(*network_);
  means.add(train_step(*network_, batch));
  return std::move(means).logs();
}

Logs Model::test_on_batch(const Example& batch) const {
  StepMeans means(*network_);
  means.add(test_step(*network_, batch));
  return std::move(means).logs();
}

Logs Model::train_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights) const {
  return train_on_batch(Example{.inputs = {x}, .targets = {y}, .weights = weights});
}
Logs Model::test_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights) const {
  return test_on_batch(Example{.inputs = {x}, .targets = {y}, .weights = weights});
}

std::vector<Tensor> Model::predict_all(const std::vector<Tensor>& inputs, const BatchSizeOptions& options) const {
  prepare(*network_, inputs, "predict");
  if (options.batch_size == 0) throw InvalidArgument("predict: batch_size is 0; give 1 or more");
  const std::int64_t count = inputs[0].shape()[0], size = static_cast<std::int64_t>(options.batch_size);
  for (const Tensor& input : inputs)
    if (input.shape()[0] != count)
      throw InvalidArgument(
          fmt::format("predict: inputs of {} and {} examples; give all the same number", count, input.shape()[0]));
  const auto batch_at = [&](std::int64_t begin) {
    std::vector<Tensor> batch;
    for (const Tensor& input : inputs) batch.push_back(rows_of(input, begin, std::min(size, count - begin)));
    cast_inputs(*network_, batch);
    return batch;
  };
  return tidy([&] {
    const std::int64_t last = count <= size ? 0 : (count - 1) / size * size;
    std::vector<std::vector<Tensor>> kinds = {batch_at(0)};
    if (last > 0 && count - last != size) kinds.push_back(batch_at(last));
    require_room_to_predict(*network_, kinds, count);
    if (last == 0) {
      std::vector<Tensor> results = predict_step(*network_, kinds[0]);
      for (Tensor& result : results) result = own(result, inputs);
      return results;
    }
    std::vector<Collected> collected(network_->output_slots().size());
    for (std::int64_t begin = 0; begin < count; begin += size) {
      std::vector<Tensor> parts = tidy([&] { return predict_step(*network_, batch_at(begin)); });
      for (std::size_t i = 0; i < parts.size(); ++i)
        collected[i].add(parts[i], begin, std::min(size, count - begin), count);
    }
    std::vector<Tensor> results;
    for (const Collected& each : collected) results.push_back(each.all());
    return results;
  });
}

Tensor Model::predict(const Tensor& x, const BatchSizeOptions& options) const {
  if (network_->is_connected() && network_->output_slots().size() != 1)
    throw InvalidArgument(
        fmt::format("predict: model \"{}\" has {} outputs; use predict_all", name(), network_->output_slots().size()));
  return predict_all({x}, options).at(0);
}

void Model::stop_training() const noexcept { network_->training.stop = true; }
bool Model::is_built() const noexcept { return network_->is_built(); }

std::vector<Layer> Model::layers() const {
  std::vector<Layer> result;
  for (const auto& layer : network_->layers()) result.emplace_back(layer);
  return result;
}

Layer Model::layer(std::string_view name) const {
  std::string known;
  for (const auto& layer : network_->layers()) {
    if (layer->name() == name) return Layer(layer);
    known += known.empty() ? layer->name() : ", " + layer->name();
  }
  throw NotFound(fmt::format("model \"{}\": no layer \"{}\"; there are: {}", this->name(), name, known));
}

const Optimizer& Model::optimizer() const {
  if (!network_->training.is_compiled())
    throw FailedPrecondition(fmt::format("model \"{}\" is not compiled; call compile first", name()));
  return *network_->training.optimizer;
}

Sequential::Sequential(const ModelOptions& options) : Model(std::make_shared<Network>(options.name)) {}

Sequential::Sequential(std::initializer_list<Layer> layers, const ModelOptions& options)
    : Sequential(std::vector<Layer>(layers), options) {}

Sequential::Sequential(const std::vector<Layer>& layers, const ModelOptions& options) : Sequential(options) {
  for (const Layer& layer : layers) add(layer);
}

void Sequential::add(const Layer& layer) const { network_->add(layer.shared_base()); }

}  // namespace plimsoll
