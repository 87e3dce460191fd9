#include "plimsoll/model/internal/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/layers/input_layer.h"
#include "plimsoll/tensor/name_scope.h"

namespace plimsoll::internal {
namespace {

using CallPointer = std::shared_ptr<const LayerOutput::Node>;

void collect_names(const LayerBase& layer, std::vector<std::string>& names) {
  if (!layer.name().empty()) names.push_back(layer.name());
  for (const LayerBase* inner : layer.inner_layers()) collect_names(*inner, names);
}

}  // namespace

Network::Network(const std::string& name) : sequential_(true) { give_name(name); }

Network::Network(const std::vector<LayerOutput>& inputs, const std::vector<LayerOutput>& outputs,
                 const std::string& name)
    : sequential_(false) {
  give_name(name);
  if (inputs.empty() || outputs.empty())
    throw InvalidArgument("model: there are no inputs or no outputs; give at least one of each");
  for (const LayerOutput& input : inputs) {
    if (!input.node()->inputs.empty())
      throw InvalidArgument(fmt::format("model: the output of layer \"{}\" is given as an input; begin with Input",
                                        input.node()->layer->name()));
    add_call(input.node());
  }
  // Depth first, without recursion: files may describe chains of any length.
  for (const LayerOutput& output : outputs) {
    std::vector<std::pair<CallPointer, std::size_t>> path = {{output.node(), 0}};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next < node->inputs.size()) {
        CallPointer deeper = node->inputs[next++].node();
        if (!first_slots_.count(deeper.get())) path.emplace_back(std::move(deeper), 0);
        continue;
      }
      const CallPointer done = node;
      path.pop_back();
      if (first_slots_.count(done.get())) continue;
      if (done->inputs.empty())
        throw InvalidArgument("model: an output depends on an Input that is not among the inputs; list it");
      add_call(done);
    }
  }
  const auto slot_of = [&](const LayerOutput& place) { return first_slots_.at(place.node().get()) + place.index(); };
  for (const LayerOutput& input : inputs) input_slots_.push_back(slot_of(input));
  for (const LayerOutput& output : outputs) output_slots_.push_back(slot_of(output));
  refuse_unused_inputs();
  set_batch_shape(inputs[0].shape());
  set_input_dtype(inputs[0].dtype());
  name_layers(layers_);
  find_ends();
  Shapes shapes;
  for (const LayerOutput& input : inputs) shapes.push_back(input.shape());
  if (this->name().empty()) set_name("model");
  ensure_built(shapes);
  nodes_.clear();
  first_slots_.clear();
}

void Network::refuse_unused_inputs() const {
  std::set<std::size_t> used(output_slots_.begin(), output_slots_.end());
  for (const Call& call : calls_) used.insert(call.inputs.begin(), call.inputs.end());
  for (std::size_t i = 0; i < input_slots_.size(); ++i) {
    if (used.count(input_slots_[i]) > 0) continue;
    const std::string& name = call_of(input_slots_[i]).layer->name();
    throw InvalidArgument(fmt::format("model: no output depends on input {}{}; use it, or leave it out", i,
                                      name.empty() ? "" : fmt::format(" (\"{}\")", name)));
  }
}

void Network::add_layer(const std::shared_ptr<LayerBase>& layer) {
  if (known_.insert(layer.get()).second) layers_.push_back(layer);
}

void Network::add_call(const CallPointer& node) {
  Call call{.layer = node->layer, .first_output = num_slots_, .shapes = node->shapes};
  for (const LayerOutput& input : node->inputs)
    call.inputs.push_back(first_slots_.at(input.node().get()) + input.index());
  if (!first_slots_.emplace(node.get(), num_slots_).second)
    throw InvalidArgument("model: an input is given twice; list each once");
  nodes_.push_back(node);
  num_slots_ += node->shapes.size();
  calls_.push_back(std::move(call));
  add_layer(node->layer);
}

// "dense", "dense_1", ...: numbered within the model, nested ones included. If it throws, no name was taken.
void Network::name_layers(std::span<const std::shared_ptr<LayerBase>> layers) {
  std::vector<std::string> all, own;
  std::unordered_set<std::string> seen;
  for (const auto& layer : layers) {
    collect_names(*layer, all);
    if (layer->name().empty()) continue;
    if (names_.own.count(layer->name()) > 0 || !seen.insert(layer->name()).second)
      throw InvalidArgument(
          fmt::format("model \"{}\": two layers are named \"{}\"; give one another name", name(), layer->name()));
    own.push_back(layer->name());
  }
  names_.all.insert(all.begin(), all.end());
  names_.own.insert(own.begin(), own.end());
  for (const auto& layer : layers) {
    if (!layer->name().empty()) continue;
    const std::string base =
        layer->class_name() == std::string("InputLayer") ? "input" : snake_case(layer->class_name());
    int& next = names_.next[base];
    std::string name;
    do {
      name = next == 0 ? base : fmt::format("{}_{}", base, next);
      ++next;
    } while (!names_.all.insert(name).second);
    names_.own.insert(name);
    layer->set_name(name);
  }
}

void Network::find_ends() {
  std::vector<std::size_t> last(num_slots_, SIZE_MAX);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    calls_[i].ended.clear();
    for (const std::size_t slot : calls_[i].inputs) last[slot] = i;
  }
  for (const std::size_t slot : output_slots_) last[slot] = SIZE_MAX;
  for (std::size_t slot = 0; slot < num_slots_; ++slot)
    if (last[slot] != SIZE_MAX) calls_[last[slot]].ended.push_back(slot);
}

void Network::add(const std::shared_ptr<LayerBase>& layer) {
  if (!known_.insert(layer.get()).second)
    throw InvalidArgument(
        fmt::format("model \"{}\": layer \"{}\" is in it already; a chain has each once", name(), layer->name()));
  note_change();
  try {
    layers_.push_back(layer);
    name_layers({&layer, 1});
    if (is_connected())
      append(layer);
    else if (layer->batch_shape().is_set() && layers_.size() == 1)
      connect(layer->batch_shape(), layer->input_dtype());
  } catch (...) {
    remove_last(layer);
    throw;
  }
}

// As if it had never been added; rare, so it may visit all layers.
void Network::remove_last(const std::shared_ptr<LayerBase>& layer) {
  known_.erase(layer.get());
  if (!layers_.empty() && layers_.back() == layer) layers_.pop_back();
  names_ = {};
  name_layers(layers_);
}

// The next layer of a connected chain.
void Network::append(const std::shared_ptr<LayerBase>& layer) {
  const Shape input = call_of(output_slots_[0]).shapes.at(output_slots_[0] - call_of(output_slots_[0]).first_output);
  Call call{.layer = layer, .inputs = {output_slots_[0]}, .first_output = num_slots_};
  call.shapes = layer->output_shapes({input});
  layer->ensure_built({input});
  call.ended = {output_slots_[0]};
  num_slots_ += call.shapes.size();
  output_slots_ = {call.first_output};
  calls_.push_back(std::move(call));
}

void Network::connect(const Shape& input, DType dtype) {
  if (is_connected()) return;
  if (layers_.empty()) throw FailedPrecondition(fmt::format("model \"{}\": it has no layers; add some", name()));
  std::vector<std::int64_t> sizes(input.begin(), input.end());
  has_input_shape_ = layers_[0]->batch_shape().is_set();
  if (!has_input_shape_ && !sizes.empty()) sizes[0] = kUnknownSize;
  auto begin = std::dynamic_pointer_cast<InputLayer>(layers_[0]);
  const bool own = begin == nullptr;
  if (own) {
    begin = std::make_shared<InputLayer>();
    begin->set_name(layers_[0]->name() + "_input");
    begin->set_batch_shape(Shape(sizes));
    begin->set_input_dtype(dtype);
  }
  calls_ = {Call{.layer = begin, .inputs = {}, .first_output = 0, .shapes = {begin->batch_shape()}, .ended = {}}};
  num_slots_ = 1;
  input_slots_ = output_slots_ = {0};
  try {
    for (std::size_t i = own ? 0 : 1; i < layers_.size(); ++i) append(layers_[i]);
  } catch (...) {
    calls_.clear();
    input_slots_.clear();
    output_slots_.clear();
    throw;
  }
  set_batch_shape(begin->batch_shape());
  set_input_dtype(begin->input_dtype());
  if (name().empty()) set_name("sequential");
  ensure_built({begin->batch_shape()});
}

void Network::build(const Shapes& inputs) {
  if (sequential_) return connect(inputs.at(0), f32);
  for (const Call& call : calls_) {
    Shapes shapes;
    for (const std::size_t slot : call.inputs) {
      const Call& from = call_of(slot);
      shapes.push_back(from.shapes.at(slot - from.first_output));
    }
    if (!call.inputs.empty()) call.layer->ensure_built(shapes);
  }
}

const Network::Call& Network::call_of(std::size_t slot) const {
  const auto after = std::upper_bound(calls_.begin(), calls_.end(), slot,
                                      [](std::size_t wanted, const Call& call) { return wanted < call.first_output; });
  return *(after - 1);
}

Shapes Network::output_shapes(const Shapes& inputs) const {
  if (!is_connected()) {  // A chain that waits for its input.
    Shapes shapes = inputs;
    for (const auto& layer : layers_) shapes = layer->output_shapes(shapes);
    return shapes;
  }
  const std::vector<Shape> slots = slot_shapes(inputs);
  Shapes result;
  for (const std::size_t slot : output_slots_) result.push_back(slots[slot]);
  return result;
}

std::size_t Network::bytes_between_layers(const Shapes& inputs) const {
  std::size_t total = 0;
  const auto add = [&](std::size_t bytes) { total = bytes > SIZE_MAX - total ? SIZE_MAX : total + bytes; };
  const std::vector<Shape> slots = slot_shapes(inputs);
  for (const Shape& shape : slots)
    if (shape.is_known()) add(shape.size() * sizeof(float));
  for (const Call& call : calls_) {
    const auto* inner = dynamic_cast<const Network*>(call.layer.get());
    if (inner == nullptr || !inner->is_connected()) continue;
    Shapes given;
    for (const std::size_t slot : call.inputs) given.push_back(slots[slot]);
    add(inner->bytes_between_layers(given));
  }
  return total;
}

std::vector<Shape> Network::slot_shapes(const Shapes& inputs) const {
  if (inputs.size() != input_slots_.size())
    throw InvalidArgument(fmt::format("model \"{}\": takes {}, was given {}", name(),
                                      plural(input_slots_.size(), "input"), inputs.size()));
  std::vector<Shape> slots(num_slots_);
  for (std::size_t i = 0; i < inputs.size(); ++i) slots[input_slots_[i]] = inputs[i];
  for (const Call& call : calls_) {
    if (call.inputs.empty()) continue;
    Shapes given;
    for (const std::size_t slot : call.inputs) given.push_back(slots[slot]);
    const Shapes shapes = call.layer->output_shapes(given);
    for (std::size_t i = 0; i < shapes.size(); ++i) slots[call.first_output + i] = shapes[i];
  }
  return slots;
}

std::vector<Tensor> Network::call_all(const std::vector<Tensor>& inputs, CallContext& context) {
  if (inputs.size() != input_slots_.size())
    throw InvalidArgument(fmt::format("model \"{}\": takes {}, was given {}", name(),
                                      plural(input_slots_.size(), "input"), inputs.size()));
  std::vector<Tensor> values(num_slots_), masks(num_slots_);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[input_slots_[i]] = inputs[i];
    masks[input_slots_[i]] = context.mask(i);
  }
  for (const Call& call : calls_) {
    if (call.inputs.empty()) continue;
    std::vector<Tensor> given, given_masks;
    for (const std::size_t slot : call.inputs) {
      given.push_back(values[slot]);
      given_masks.push_back(masks[slot]);
    }
    for (const std::size_t slot : call.ended) values[slot] = {};
    context.set_masks(std::move(given_masks));
    const NameScope scope(call.layer->name());
    std::vector<Tensor> results = call.layer->call_placed(given, context);
    masks[call.first_output] = call.layer->output_mask(given, context);
    for (std::size_t i = 0; i < results.size(); ++i) values[call.first_output + i] = std::move(results[i]);
  }
  std::vector<Tensor> results, result_masks;
  for (const std::size_t slot : output_slots_) {
    results.push_back(values[slot]);
    result_masks.push_back(masks[slot]);
  }
  context.set_masks(std::move(result_masks));
  return results;
}

std::vector<LayerBase*> Network::inner_layers() const {
  std::vector<LayerBase*> result;
  for (const auto& layer : layers_) result.push_back(layer.get());
  return result;
}

std::vector<std::string> Network::output_names() const {
  std::vector<std::string> result;
  for (const std::size_t slot : output_slots_) result.push_back(call_of(slot).layer->name());
  return result;
}

std::size_t Network::parameter_bytes() const {
  std::size_t bytes = 0;
  for (const Weight& weight : unique_weights()) bytes += whole_blocks(weight.variable.nbytes());
  return bytes;
}

std::vector<LayerBase::Weight> Network::unique_weights() const {
  std::vector<Weight> result;
  std::set<std::uint64_t> seen;
  for (const Weight& weight : weights())
    if (seen.insert(weight.variable.id()).second) result.push_back(weight);
  return result;
}

void Network::visit_layers(const std::function<void(LayerBase&)>& f) {
  const std::function<void(LayerBase&)> visit = [&](LayerBase& layer) {
    f(layer);
    for (LayerBase* inner : layer.inner_layers()) visit(*inner);
  };
  for (const auto& layer : layers_) visit(*layer);
}

}  // namespace plimsoll::internal
