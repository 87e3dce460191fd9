// The names of a model's variables in a Keras checkpoint: paths of the objects that hold them.
//
//   for (const ModelVariable& each : object_variables(network)) object_key(each.path);
//       // "layer_with_weights-0/cell/kernel/.ATTRIBUTES/VARIABLE_VALUE"
//
// Layers count in Keras' order: by their distance from the outputs, the farthest first.
#pragma once

#include <vector>

#include "plimsoll/io/object_graph.h"
#include "plimsoll/model/internal/network.h"

namespace plimsoll::internal {

struct ModelVariable {
  ObjectPath path;
  Variable variable;
};

// Each variable once, by its shortest path.
std::vector<ModelVariable> object_variables(const Network& network);

// The layers in the order of Keras' model.layers.
std::vector<const LayerBase*> keras_layers(const Network& network);

}  // namespace plimsoll::internal
