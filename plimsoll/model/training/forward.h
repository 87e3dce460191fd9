// The parts of a step: what it computes forward, and what is done to gradients. Run directly, or traced.
#pragma once

#include <vector>

#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/training/training.h"

namespace plimsoll {

class Network;

struct Forward {
  std::vector<Tensor> outputs;
  std::vector<Tensor> targets, weights;  // Of each output, where that is.
  std::vector<Tensor> losses;            // Of each output.
  Tensor loss;                           // All of them, and regularization.
};

Forward run_forward(Network& network, const Example& example, CallContext& context);
void clip_gradients(std::vector<Tensor>& gradients, const GradientClipping& clipping);

}  // namespace plimsoll
