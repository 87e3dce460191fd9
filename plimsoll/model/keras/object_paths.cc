#include "plimsoll/model/keras/object_paths.h"

#include <algorithm>
#include <map>
#include <set>

#include "plimsoll/model/layers/recurrent_layer.h"

namespace plimsoll::internal {
namespace {

// What follows the layer's own name: "kernel", or "query" and "kernel".
ObjectPath parts_after(const std::string& layer, const std::string& weight) {
  ObjectPath parts;
  for (std::size_t at = layer.size() + 1; at <= weight.size();) {
    const std::size_t end = std::min(weight.find('/', at), weight.size());
    parts.push_back(weight.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The attributes that lead from a layer to one of its own weights.
ObjectPath attributes_of(const LayerBase& layer, const std::string& weight) {
  ObjectPath parts = parts_after(layer.name(), weight);
  if (dynamic_cast<const RecurrentLayer*>(&layer) != nullptr) parts.insert(parts.begin(), "cell");
  if (layer.class_name() == std::string("MultiHeadAttention") && parts.size() == 2)
    parts[0] = parts[0] == "attention_output" ? "_output_dense" : "_" + parts[0] + "_dense";
  return parts;
}

// The attribute under which a layer keeps its inner layers.
std::string attribute_of_inner(const LayerBase& layer, std::size_t index) {
  if (layer.class_name() == std::string("Bidirectional")) return index == 0 ? "forward_layer" : "backward_layer";
  const std::size_t count = layer.inner_layers().size();
  return count == 1 ? "layer" : "layer-" + std::to_string(index);
}

void collect(const LayerBase& layer, const ObjectPath& prefix, std::vector<ModelVariable>& out) {
  if (const auto* network = dynamic_cast<const Network*>(&layer)) {
    std::size_t number = 0;
    for (const LayerBase* inner : keras_layers(*network)) {
      if (inner->weights().empty()) continue;
      ObjectPath path = prefix;
      path.push_back("layer_with_weights-" + std::to_string(number++));
      collect(*inner, path, out);
    }
    return;
  }
  for (const LayerBase::Weight& weight : layer.own_weights()) {
    ObjectPath path = prefix;
    for (std::string& part : attributes_of(layer, weight.variable.name())) path.push_back(std::move(part));
    out.push_back({std::move(path), weight.variable});
  }
  const std::vector<LayerBase*> inner = layer.inner_layers();
  for (std::size_t i = 0; i < inner.size(); ++i) {
    ObjectPath path = prefix;
    path.push_back(attribute_of_inner(layer, i));
    collect(*inner[i], path, out);
  }
}

// The order in which a depth-first walk from the outputs visits the layers, and their largest distance from the
// outputs.
class KerasOrder {
 public:
  explicit KerasOrder(const Network& network) : network_(network) {
    const auto& calls = network.calls();
    for (std::size_t i = 0; i < calls.size(); ++i) call_at_[calls[i].first_output] = i;
    for (const std::size_t slot : network.output_slots()) walk(call_of(slot));
    std::vector<std::size_t> depth(calls.size(), 0);
    for (auto call = finished_.rbegin(); call != finished_.rend(); ++call) {
      std::size_t& layer_depth = depths_[calls[*call].layer.get()];
      depth[*call] = layer_depth = std::max(depth[*call], layer_depth);
      for (const std::size_t slot : calls[*call].inputs)
        depth[call_of(slot)] = std::max(depth[call_of(slot)], depth[*call] + 1);
    }
  }
  bool before(const LayerBase* a, const LayerBase* b) const {
    const auto [depth_a, depth_b] = std::pair(depth_of(a), depth_of(b));
    return depth_a != depth_b ? depth_a > depth_b : index_of(a) < index_of(b);
  }

 private:
  std::size_t call_of(std::size_t slot) const { return call_at_.at(network_.call_of(slot).first_output); }
  // Without recursion: files may describe chains of any length.
  void walk(std::size_t from) {
    std::vector<std::pair<std::size_t, std::size_t>> path;
    const auto enter = [&](std::size_t call) {
      if (!seen_.insert(call).second) return;
      indices_.emplace(network_.calls()[call].layer.get(), indices_.size());
      path.emplace_back(call, 0);
    };
    enter(from);
    while (!path.empty()) {
      auto& [call, next] = path.back();
      const std::vector<std::size_t>& inputs = network_.calls()[call].inputs;
      if (next < inputs.size()) {
        enter(call_of(inputs[next++]));
        continue;
      }
      finished_.push_back(call);
      path.pop_back();
    }
  }
  std::size_t depth_of(const LayerBase* layer) const {
    const auto found = depths_.find(layer);
    return found == depths_.end() ? 0 : found->second;
  }
  std::int64_t index_of(const LayerBase* layer) const {
    const auto found = indices_.find(layer);
    return found == indices_.end() ? -1 : static_cast<std::int64_t>(found->second);
  }

  const Network& network_;
  std::map<std::size_t, std::size_t> call_at_;  // Number of a call, by its first slot.
  std::set<std::size_t> seen_;
  std::vector<std::size_t> finished_;  // Calls, each after all it depends on.
  std::map<const LayerBase*, std::size_t> indices_, depths_;
};

}  // namespace

std::vector<const LayerBase*> keras_layers(const Network& network) {
  std::vector<const LayerBase*> layers;
  for (const auto& layer : network.layers()) layers.push_back(layer.get());
  if (network.is_sequential()) return layers;
  const KerasOrder order(network);
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const LayerBase* a, const LayerBase* b) { return order.before(a, b); });
  return layers;
}

std::vector<ModelVariable> object_variables(const Network& network) {
  std::vector<ModelVariable> all;
  collect(network, {}, all);
  std::map<std::uint64_t, const ModelVariable*> shortest;
  for (const ModelVariable& each : all) {
    const ModelVariable*& best = shortest[each.variable.id()];
    if (best == nullptr || each.path.size() < best->path.size()) best = &each;
  }
  std::vector<ModelVariable> result;
  for (const ModelVariable& each : all)
    if (shortest.at(each.variable.id()) == &each) result.push_back(each);
  return result;
}

}  // namespace plimsoll::internal
