// Checks of layers' options and inputs, with common error texts.
#pragma once

#include <cstdint>

#include "plimsoll/model/layers/layer.h"

namespace plimsoll {
class ConfigReader;
}  // namespace plimsoll

namespace plimsoll::internal {

// They throw InvalidArgument with the layer's name and the shape.
std::int64_t require_positive(const char* where, const char* what, std::int64_t value);  // Gives it back.
void require_rank(const LayerBase& layer, const Shapes& inputs, std::size_t rank);
void require_min_rank(const LayerBase& layer, const Shapes& inputs, std::size_t rank);
std::int64_t require_known_last(const LayerBase& layer, const Shapes& inputs);  // The size of the last axis.
void require_channels_last(const ConfigReader& in);                             // Throws Unsupported.

Shape with_last(const Shape& shape, std::int64_t size);  // The last size replaced.
std::int64_t product_after_batch(const Shape& shape);    // Elements of an example; -1 when a size is unknown.

}  // namespace plimsoll::internal
