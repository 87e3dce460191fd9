#include "plimsoll/model/training/forward.h"

#include <algorithm>

#include "plimsoll/model/internal/network.h"
#include "plimsoll/ops/clip.h"
#include "plimsoll/tensor/on_device_of.h"

namespace plimsoll {

Forward run_forward(Network& network, const Example& example, CallContext& context) {
  const Training& training = network.training;
  Forward forward;
  forward.outputs = network.call_all(example.inputs, context);
  const auto add_loss = [&](const Tensor& loss) {
    forward.loss = forward.loss.is_empty_handle() ? loss : forward.loss + beside(loss, forward.loss);
  };
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    const Tensor& output = forward.outputs[i];
    const OnDeviceOf there(output);
    forward.targets.push_back(beside(example.targets[i], output));
    forward.weights.push_back(beside(example.weights, output));
    forward.losses.push_back(training.losses[i](forward.targets[i], output, forward.weights[i]));
    const double weight = training.loss_weights[i];
    add_loss(weight == 1 ? forward.losses[i] : forward.losses[i] * weight);
  }
  for (const LayerBase::Weight& weight : network.unique_weights()) {
    if (!weight.regularizer.is_set()) continue;
    const Tensor value = weight.variable;
    const OnDeviceOf there(value);
    add_loss(weight.regularizer(value));
  }
  for (const Tensor& loss : context.losses()) add_loss(loss);
  return forward;
}

namespace {

// On one device for a moment, when they are on several.
void clip_global_norm(std::vector<Tensor>& gradients, double norm) {
  const auto first =
      std::find_if(gradients.begin(), gradients.end(), [](const Tensor& g) { return !g.is_empty_handle(); });
  if (first == gradients.end()) return;
  const OnDeviceOf there(*first);
  std::vector<Tensor> together;
  for (const Tensor& gradient : gradients) together.push_back(beside(gradient, *first));
  std::vector<Tensor> clipped = clip_by_global_norm(together, norm).tensors;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!gradients[i].is_empty_handle()) gradients[i] = beside(clipped[i], gradients[i]);
}

}  // namespace

void clip_gradients(std::vector<Tensor>& gradients, const GradientClipping& clipping) {
  if (clipping.global_norm > 0) clip_global_norm(gradients, clipping.global_norm);
  for (Tensor& gradient : gradients) {
    if (gradient.is_empty_handle()) continue;
    const OnDeviceOf there(gradient);
    if (clipping.norm > 0) gradient = clip_by_norm(gradient, clipping.norm);
    if (clipping.value > 0) gradient = clip_by_value(gradient, -clipping.value, clipping.value);
  }
}

}  // namespace plimsoll
