#include "plimsoll/model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_layer.h"

namespace plimsoll {
namespace {

std::vector<Loss> losses_for(const Network& network, const std::vector<Loss>& given, std::size_t outputs) {
  if (given.empty())
    throw InvalidArgument(fmt::format("compile: model \"{}\" is given no loss; name one", network.name()));
  if (given.size() == outputs) return given;
  if (given.size() == 1) return std::vector<Loss>(outputs, given[0]);
  throw InvalidArgument(fmt::format("compile: {} for the {} of model \"{}\"; give one or one for each",
                                    given.size() == 1 ? "1 loss" : fmt::format("{} losses", given.size()),
                                    plural(outputs, "output"), network.name()));
}

const Network& connected(const Network& network) {
  if (!network.is_connected())
    throw FailedPrecondition(
        fmt::format("model \"{}\" has no shapes yet; give its first layer an input_shape", network.name()));
  return network;
}

Shapes shapes_at(const Network& network, const std::vector<std::size_t>& slots) {
  Shapes result;
  for (const std::size_t slot : slots) {
    const Network::Call& call = network.call_of(slot);
    result.push_back(call.shapes[slot - call.first_output]);
  }
  return result;
}

struct Count {
  std::size_t parameters = 0, bytes = 0, trainable = 0;
};

Count count_of(const std::vector<LayerBase::Weight>& weights) {
  Count count;
  for (const LayerBase::Weight& weight : weights) {
    count.parameters += weight.variable.size();
    count.bytes += weight.variable.nbytes();
    if (weight.trainable) count.trainable += weight.variable.size();
  }
  return count;
}

// The size of a call's outputs, for one example; "" when sizes are not known.
std::string bytes_per_example(const Shapes& shapes) {
  std::size_t bytes = 0;
  for (const Shape& shape : shapes) {
    std::size_t elements = 1;
    for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
      if (shape[axis] == kUnknownSize) return "?";
      elements *= static_cast<std::size_t>(shape[axis]);
    }
    bytes += elements * size_of(f32);
  }
  return format_bytes(bytes);
}

}  // namespace

CallbackBase::~CallbackBase() = default;

Callback::Callback(std::shared_ptr<CallbackBase> base) : base_(std::move(base)) {
  if (!base_) throw InvalidArgument("Callback: there is none behind it; give one, or leave it out");
}

Model::Model(const std::vector<LayerOutput>& inputs, const std::vector<LayerOutput>& outputs,
             const ModelOptions& options)
    : Model(std::make_shared<Network>(inputs, outputs, options.name)) {}

Model::Model(std::shared_ptr<Network> network) : Layer(network), network_(std::move(network)) {}

void Model::compile(const CompileOptions& options) {
  const std::size_t outputs = network_->is_connected() ? network_->output_slots().size() : 1;
  std::vector<Loss> losses = losses_for(*network_, options.loss.list(), outputs);
  std::vector<double> weights = options.loss_weights.empty() ? std::vector<double>(outputs, 1.0) : options.loss_weights;
  if (weights.size() != outputs)
    throw InvalidArgument(fmt::format("compile: {} for the {} of model \"{}\"; give one for each",
                                      plural(weights.size(), "loss weight"), plural(outputs, "output"), name()));
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
  training.job = nullptr;
  training.spread = nullptr;
  training.plans.clear();
}

Logs Model::train_on_batch(const Example& batch) {
  StepMeans means(*network_);
  means.add(run_step(*network_, StepKind::kTrain, batch, "train_on_batch"));
  return std::move(means).logs();
}

Logs Model::test_on_batch(const Example& batch) const {
  StepMeans means(*network_);
  means.add(run_step(*network_, StepKind::kTest, batch, "test_on_batch"));
  return std::move(means).logs();
}

Logs Model::train_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights) {
  return train_on_batch(Example{.inputs = {x}, .targets = {y}, .weights = weights});
}
Logs Model::test_on_batch(const Tensor& x, const Tensor& y, const Tensor& weights) const {
  return test_on_batch(Example{.inputs = {x}, .targets = {y}, .weights = weights});
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

Shapes Model::input_shapes() const { return shapes_at(connected(*network_), network_->input_slots()); }
Shapes Model::output_shapes() const { return shapes_at(connected(*network_), network_->output_slots()); }
std::vector<std::string> Model::output_names() const { return connected(*network_).output_names(); }

std::vector<DType> Model::input_dtypes() const {
  std::vector<DType> result;
  for (const std::size_t slot : connected(*network_).input_slots())
    result.push_back(network_->call_of(slot).layer->input_dtype());
  return result;
}

std::vector<std::string> Model::input_names() const {
  std::vector<std::string> result;
  for (const std::size_t slot : connected(*network_).input_slots())
    result.push_back(network_->call_of(slot).layer->name());
  return result;
}

bool Model::is_compiled() const noexcept { return network_->training.is_compiled(); }

bool Model::loss_takes_labels() const {
  if (!is_compiled()) throw FailedPrecondition(fmt::format("model \"{}\" is not compiled; call compile first", name()));
  return network_->training.losses[0].takes_labels();
}

void Model::summary(std::ostream& out) const {
  if (!network_->is_connected())
    throw FailedPrecondition(
        fmt::format("summary: model \"{}\" has no shapes yet; give the first layer an input_shape", name()));
  const std::string line(92, '_'), row = "{:<34} {:<22} {:>10} {:>11} {:>11}\n";
  out << fmt::format("Model: \"{}\"\n{}\n", name(), line);
  out << fmt::format(fmt::runtime(row), "Layer (type)", "Output shape", "Parameters", "Memory", "Per example");
  out << std::string(92, '=') << "\n";
  for (const Network::Call& call : network_->calls()) {
    const bool given =
        std::find(network_->layers().begin(), network_->layers().end(), call.layer) != network_->layers().end();
    if (!given) continue;  // The implicit input of a chain.
    const Count count = count_of(call.layer->weights());
    out << fmt::format(fmt::runtime(row), fmt::format("{} ({})", call.layer->name(), call.layer->class_name()),
                       call.shapes[0].to_tuple_string(), count.parameters, format_bytes(count.bytes),
                       bytes_per_example(call.shapes));
  }
  const Count all = count_of(network_->unique_weights());
  out << std::string(92, '=') << "\n";
  out << fmt::format("Parameters: {} ({}), trainable {}, others {}\n", all.parameters, format_bytes(all.bytes),
                     all.trainable, all.parameters - all.trainable);
}

void Model::summary() const { summary(std::cout); }

void Model::reset_states() const {
  network_->visit_layers([](LayerBase& layer) {
    if (auto* recurrent = dynamic_cast<RecurrentLayer*>(&layer)) recurrent->reset_states();
  });
}

Sequential::Sequential(const ModelOptions& options) : Model(std::make_shared<Network>(options.name)) {}

Sequential::Sequential(std::initializer_list<Layer> layers, const ModelOptions& options)
    : Sequential(std::vector<Layer>(layers), options) {}

Sequential::Sequential(const std::vector<Layer>& layers, const ModelOptions& options) : Sequential(options) {
  for (const Layer& layer : layers) add(layer);
}

void Sequential::add(const Layer& layer) { network_->add(layer.shared_base()); }

}  // namespace plimsoll
