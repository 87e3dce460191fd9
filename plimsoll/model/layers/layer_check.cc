#include "plimsoll/model/layers/layer_check.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"

namespace plimsoll::internal {
namespace {

std::string who(const LayerBase& layer) {
  return layer.name().empty() ? std::string(layer.class_name()) : fmt::format("layer \"{}\"", layer.name());
}

void require_one(const LayerBase& layer, const Shapes& inputs) {
  if (inputs.size() != 1)
    throw InvalidArgument(fmt::format("{}: takes one input, was given {}", who(layer), inputs.size()));
}

}  // namespace

std::int64_t require_positive(const char* where, const char* what, std::int64_t value) {
  if (value < 1) throw InvalidArgument(fmt::format("{}: {} is {}; give 1 or more", where, what, value));
  return value;
}

void require_rank(const LayerBase& layer, const Shapes& inputs, std::size_t rank) {
  require_one(layer, inputs);
  if (inputs[0].rank() != rank)
    throw InvalidArgument(fmt::format("{}: expected {} axes, batch included, found {} of shape {}", who(layer), rank,
                                      inputs[0].rank(), inputs[0].to_string()));
}

void require_min_rank(const LayerBase& layer, const Shapes& inputs, std::size_t rank) {
  require_one(layer, inputs);
  if (inputs[0].rank() < rank)
    throw InvalidArgument(fmt::format("{}: expected {} axes or more, batch included, found {} of shape {}", who(layer),
                                      rank, inputs[0].rank(), inputs[0].to_string()));
}

std::int64_t require_known_last(const LayerBase& layer, const Shapes& inputs) {
  const std::int64_t size = inputs.at(0).back();
  if (size < 1)
    throw InvalidArgument(fmt::format("{}: the last axis of its input {} must have a known size of 1 or more",
                                      who(layer), inputs[0].to_string()));
  return size;
}

void require_channels_last(const ConfigReader& in) {
  const std::string format = in.text("data_format", "channels_last");
  if (format != "channels_last")
    throw Unsupported(
        fmt::format("{}: data_format \"{}\" is not offered; convert the model to channels_last", in.path(), format));
}

Shape with_last(const Shape& shape, std::int64_t size) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.back() = size;
  return Shape(sizes);
}

std::int64_t product_after_batch(const Shape& shape) {
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis] == kUnknownSize) return kUnknownSize;
    count *= shape[axis];
  }
  return count;
}

}  // namespace plimsoll::internal
