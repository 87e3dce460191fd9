#include "plimsoll/model/internal/forward.h"

#include "plimsoll/model/internal/network.h"
#include "plimsoll/ops/clip.h"

namespace plimsoll {

Forward run_forward(Network& network, const Example& example, CallContext& context) {
  const Training& training = network.training;
  Forward forward;
  forward.outputs = network.call_all(example.inputs, context);
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    const Tensor loss = training.losses[i](example.targets[i], forward.outputs[i], example.weights);
    const double weight = training.loss_weights[i];
    forward.losses.push_back(loss);
    const Tensor weighted = weight == 1 ? loss : loss * weight;
    forward.loss = i == 0 ? weighted : forward.loss + weighted;
  }
  for (const LayerBase::Weight& weight : network.unique_weights())
    if (weight.regularizer.is_set()) forward.loss = forward.loss + weight.regularizer(weight.variable);
  for (const Tensor& loss : context.losses()) forward.loss = forward.loss + loss;
  return forward;
}

void clip_gradients(std::vector<Tensor>& gradients, const GradientClipping& clipping) {
  if (clipping.global_norm > 0) gradients = clip_by_global_norm(gradients, clipping.global_norm).tensors;
  for (Tensor& gradient : gradients) {
    if (gradient.is_empty_handle()) continue;
    if (clipping.norm > 0) gradient = clip_by_norm(gradient, clipping.norm);
    if (clipping.value > 0) gradient = clip_by_value(gradient, -clipping.value, clipping.value);
  }
}

}  // namespace plimsoll
