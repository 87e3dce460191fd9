#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_layer.h"
#include "plimsoll/model/model.h"

namespace plimsoll {
namespace {

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

// Bytes of what a call gives, for one example; "" when sizes are not known.
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
    if (!given) continue;  // The input of a chain, which nobody wrote.
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

}  // namespace plimsoll
