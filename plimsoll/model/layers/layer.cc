#include "plimsoll/model/layers/layer.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/layers/input_layer.h"
#include "plimsoll/model/layers/lazy_zero_weights.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/thread_context.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

bool is_whole(const Tensor& tensor) {
  const Storage* storage = tensor.record()->storage.load(std::memory_order_acquire);
  return storage != nullptr && storage->bytes() == tensor.nbytes() && !storage->is_wrapped();
}

std::vector<Variable> chosen(const LayerBase& base, bool trainable) {
  std::vector<Variable> result;
  for (const LayerBase::Weight& weight : base.weights())
    if (weight.trainable == trainable) result.push_back(weight.variable);
  return result;
}

// Zeros that take memory at their first use, if any.
Tensor zeros_later(const Shape& shape) {
  const Origin origin{.op = "variable", .category = Category::kParameters};
  return make_tensor_on(
      Storage::take_lazily(current_device(), shape.size() * sizeof(float), block_label(origin, shape, f32), {}), 0,
      shape, f32, origin);
}

// With the nodes that only it leads to, and without recursion: files may describe chains of any length.
void end_node(LayerOutput::Node* node) {
  std::vector<LayerOutput> inputs = std::move(node->inputs);
  delete node;
  while (!inputs.empty()) {
    const LayerOutput input = std::move(inputs.back());
    inputs.pop_back();
    if (input.node().use_count() != 1) continue;  // Something else ends it.
    std::vector<LayerOutput>& theirs = const_cast<LayerOutput::Node&>(*input.node()).inputs;
    inputs.insert(inputs.end(), theirs.begin(), theirs.end());
    theirs.clear();
  }
}

}  // namespace

void CallContext::assign_later(const Variable& variable, const Tensor& value) {
  if (!(variable.shape() == value.shape()) || variable.dtype() != value.dtype())
    throw InvalidArgument(fmt::format("assign_later: variable \"{}\" is {} {}, the value {} {}; they must agree",
                                      variable.name(), dtype_name(variable.dtype()), variable.shape().to_string(),
                                      dtype_name(value.dtype()), value.shape().to_string()));
  // A part of a larger buffer would have to be copied.
  const bool as_it_is = is_symbolic(value) || (value.record()->offset == 0 && is_whole(value));
  later_.emplace_back(variable, as_it_is ? value : value.clone());
}

void CallContext::commit() {
  for (const auto& [variable, value] : later_) variable.assign(value);
  later_.clear();
}

// Without a scope this does not start the runtime: settings may still change.
LayerBase::LayerBase() {
  if (DeviceScope::current() != 0) device_ = Runtime::instance().device("").name();
}
LayerBase::~LayerBase() = default;

std::vector<Tensor> LayerBase::call_placed(std::vector<Tensor>& inputs, CallContext& context) {
  std::optional<DeviceScope> there;
  if (!device_.empty())
    there.emplace(device_);
  else if (!inputs.empty() && &device_of(inputs[0]) != &current_device())
    there.emplace(inputs[0].device());
  const Device& here = current_device();
  const auto moved = [&](const Tensor& tensor) {
    return tensor.is_empty_handle() || &device_of(tensor) == &here ? tensor : tensor.to(here.name());
  };
  for (Tensor& input : inputs) input = moved(input);
  std::vector<Tensor> masks = context.masks();
  for (Tensor& mask : masks) mask = moved(mask);
  context.set_masks(std::move(masks));
  return call_all(inputs, context);
}

Shapes LayerBase::output_shapes(const Shapes& inputs) const { return {inputs.at(0)}; }
void LayerBase::build(const Shapes&) {}

Tensor LayerBase::call(const Tensor&, CallContext&) {
  throw Unsupported(
      fmt::format("layer \"{}\" of class {}: has no call; override call or call_all", name_, class_name()));
}

std::vector<Tensor> LayerBase::call_all(const std::vector<Tensor>& inputs, CallContext& context) {
  if (inputs.size() != 1)
    throw InvalidArgument(
        fmt::format("layer \"{}\" of class {}: takes one input, was given {}", name_, class_name(), inputs.size()));
  return {call(inputs[0], context)};
}

Tensor LayerBase::output_mask(const std::vector<Tensor>&, const CallContext& context) const {
  return supports_masking() ? context.mask(0) : Tensor();
}

void LayerBase::config(ConfigWriter&) const {
  throw Unsupported(
      fmt::format("layer \"{}\": class {} cannot be written to a file; override config", name_, class_name()));
}

void LayerBase::set_name(std::string name) { name_ = std::move(name); }

void LayerBase::give_name(std::string name) {
  if (name.empty()) return;
  if (name.front() == '/' || name.back() == '/')
    throw InvalidArgument(fmt::format("layer: the name \"{}\" begins or ends with a slash; leave it away", name));
  has_given_name_ = true;
  set_name(std::move(name));
}

void LayerBase::ensure_built(const Shapes& inputs) {
  if (built_) return;
  if (name_.empty()) set_name(snake_case(class_name()));
  output_shapes(inputs);  // Refuses wrong inputs before there are weights.
  try {
    std::optional<DeviceScope> there;
    if (!device_.empty()) there.emplace(device_);
    const TraceWith nobody(nullptr);  // Weights have values, even when the layer is built while tracing.
    const CategoryGuard weights(Category::kParameters);
    const TidyScope scope;
    build(inputs);
  } catch (...) {
    weights_.clear();
    throw;
  }
  if (device_.empty() && !weights_.empty()) device_ = weights_[0].variable.device();
  built_ = true;
  ++changes_;
}

void LayerBase::set_trainable(bool trainable) {
  trainable_ = trainable;
  ++changes_;
  for (LayerBase* inner : inner_layers()) inner->set_trainable(trainable);
}

std::vector<LayerBase::Weight> LayerBase::weights() const {
  std::vector<Weight> result = weights_;
  for (const LayerBase* inner : inner_layers()) {
    const std::vector<Weight> theirs = inner->weights();
    result.insert(result.end(), theirs.begin(), theirs.end());
  }
  if (!trainable_)
    for (Weight& weight : result) weight.trainable = false;
  return result;
}

Variable LayerBase::add_weight(std::string_view name, const Shape& shape, const WeightOptions& options) {
  const std::string full_name = fmt::format("{}/{}", name_, name);
  for (const Weight& weight : weights_)
    if (weight.variable.name() == full_name)
      throw InvalidArgument(
          fmt::format("layer \"{}\": there is a weight \"{}\" already; name it otherwise", name_, name));
  if (!shape.is_known())
    throw InvalidArgument(
        fmt::format("layer \"{}\": weight \"{}\" of shape {} has unknown sizes; give the input's shape", name_, name,
                    shape.to_string()));
  const std::optional<std::uint64_t> seed =
      options.seed ? std::optional(seed_at(*options.seed, weights_.size())) : std::nullopt;
  const Variable variable(LazyZeroWeights::is_on() ? zeros_later(shape) : options.initializer.make(shape, seed),
                          {.name = full_name, .trainable = options.trainable});
  weights_.push_back({variable, options.trainable, options.regularizer, options.constraint});
  return variable;
}

std::uint64_t LayerBase::own_seed() {
  if (!own_seed_) {
    const TraceWith nobody(nullptr);
    const RandomDraw drawn = draw_random({}, 4);
    own_seed_ = seed_at(drawn.key, drawn.offset);
  }
  return *own_seed_;
}

void LayerBase::set_own_seed(std::uint64_t seed) {
  if (own_seed_ == seed) return;
  own_seed_ = seed;
  ++changes_;
}

std::uint64_t LayerBase::next_seed(const std::optional<std::uint64_t>& seed) {
  return take_seed(seeds_, seed ? *seed : own_seed());
}

void LayerBase::set_input_shape(const Shape& without_batch) {
  if (!without_batch.is_set()) return;
  std::vector<std::int64_t> sizes = {kUnknownSize};
  sizes.insert(sizes.end(), without_batch.begin(), without_batch.end());
  batch_shape_ = Shape(sizes);
}

Tensor LayerBase::activity_loss(const Regularizer& regularizer, const Tensor& output) const {
  return regularizer(output) / static_cast<double>(std::max<std::int64_t>(1, output.shape()[0]));
}

const Shape& LayerOutput::shape() const { return node_->shapes.at(index_); }
DType LayerOutput::dtype() const { return node_->inputs.empty() ? node_->layer->input_dtype() : f32; }

std::vector<LayerOutput> Layer::outputs(const std::vector<LayerOutput>& inputs) const {
  const std::shared_ptr<LayerOutput::Node> node(new LayerOutput::Node, end_node);
  node->layer = base_;
  node->inputs = inputs;
  Shapes shapes;
  for (const LayerOutput& input : inputs) shapes.push_back(input.shape());
  node->shapes = base_->output_shapes(shapes);
  std::vector<LayerOutput> result;
  for (std::size_t i = 0; i < node->shapes.size(); ++i) result.emplace_back(node, i);
  return result;
}

LayerOutput Layer::operator()(const std::vector<LayerOutput>& inputs) const { return outputs(inputs).at(0); }
LayerOutput Layer::operator()(const LayerOutput& x) const { return outputs({x}).at(0); }

std::vector<Tensor> Layer::call(const std::vector<Tensor>& inputs, bool training) const {
  Shapes shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.shape());
  base_->ensure_built(shapes);
  return tidy([&] {
    const NameScope scope(base_->name());
    CallContext context(training);
    std::vector<Tensor> given = inputs;
    std::vector<Tensor> results = base_->call_placed(given, context);
    context.commit();
    return results;
  });
}

Tensor Layer::operator()(const Tensor& x, bool training) const { return call({x}, training).at(0); }

std::vector<Variable> Layer::trainable_weights() const { return chosen(*base_, true); }

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> result = chosen(*base_, true), rest = chosen(*base_, false);
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

std::size_t Layer::num_parameters() const {
  std::size_t count = 0;
  for (const LayerBase::Weight& weight : base_->weights()) count += weight.variable.size();
  return count;
}

namespace {
LayerOutput make_input(const InputOptions& options) {
  auto layer = std::make_shared<InputLayer>();
  layer->give_name(options.name);
  std::vector<std::int64_t> sizes = {kUnknownSize};
  sizes.insert(sizes.end(), options.shape.begin(), options.shape.end());
  layer->set_batch_shape(Shape(sizes));
  layer->set_input_dtype(options.dtype);
  return input_of(std::move(layer));
}
}  // namespace

Input::Input(const InputOptions& options) : LayerOutput(make_input(options)) {}

}  // namespace plimsoll
