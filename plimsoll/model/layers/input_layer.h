// InputLayer: the start of a model: a shape and a dtype; computes nothing.
#pragma once

#include <memory>

#include "plimsoll/model/layers/layer.h"

namespace plimsoll::internal {

class InputLayer final : public LayerBase {
 public:
  const char* class_name() const override { return "InputLayer"; }
  Shapes output_shapes(const Shapes&) const override { return {batch_shape()}; }
  Tensor call(const Tensor& x, CallContext&) override { return x; }
  void config(ConfigWriter&) const override {}
};

inline LayerOutput input_of(std::shared_ptr<InputLayer> layer) {
  auto node = std::make_shared<LayerOutput::Node>();
  node->shapes = {layer->batch_shape()};
  node->layer = std::move(layer);
  return {std::move(node), 0};
}

}  // namespace plimsoll::internal
