#include "plimsoll/model/training/step.h"

#include <algorithm>
#include <utility>

#include "plimsoll/model/internal/network.h"
#include "plimsoll/ops/clip.h"
#include "plimsoll/tensor/on_device_of.h"

namespace plimsoll::internal {

Forward run_forward(Network& network, const Example& batch, CallContext& context) {
  const Training& training = network.training;
  Forward forward;
  forward.outputs = network.call_all(batch.inputs, context);
  const auto add_loss = [&](const Tensor& loss) {
    forward.loss = forward.loss.is_empty_handle() ? loss : forward.loss + beside(loss, forward.loss);
  };
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    const Tensor& output = forward.outputs[i];
    const OnDeviceOf there(output);
    forward.targets.push_back(beside(batch.targets[i], output));
    forward.weights.push_back(beside(batch.weights, output));
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

StepResult measure(const Network& network, const Example& batch, const Forward& forward) {
  StepResult result;
  result.examples = static_cast<std::size_t>(batch.x().shape()[0]);
  result.loss = forward.loss.item<double>();
  for (std::size_t i = 0; i < forward.outputs.size(); ++i) {
    result.losses.push_back(forward.losses[i].item<double>());
    const OnDeviceOf there(forward.outputs[i]);
    std::vector<Metric::Sums> sums;
    for (const Metric& metric : network.training.metrics[i])
      sums.push_back(metric.measure(forward.targets[i], forward.outputs[i], forward.weights[i]));
    result.metrics.push_back(std::move(sums));
  }
  return result;
}

StepMeans::StepMeans(Network& network, std::string_view prefix)
    : network_(network), losses_(network.training.losses.size()) {
  const auto add_name = [&](const std::string& name) { names_.push_back(std::string(prefix) + name); };
  add_name("loss");
  if (losses_.size() > 1)
    for (const std::string& output : network.output_names()) add_name(output + "_loss");
  for (const auto& metrics : network.training.metrics) metrics_.insert(metrics_.end(), metrics.begin(), metrics.end());
  for (const Metric& metric : metrics_) add_name(metric.name());
  for (const std::string& name : names_) logs_.set(name, 0);
}

void StepMeans::add(const StepResult& step) noexcept {
  if (!std::exchange(begun_, true))
    for (const Metric& metric : metrics_) metric.reset();
  const auto count = static_cast<double>(step.examples);
  examples_ += count;
  loss_ += step.loss * count;
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    losses_[i] += step.losses[i] * count;
    for (std::size_t m = 0; m < step.metrics[i].size(); ++m) network_.training.metrics[i][m].add(step.metrics[i][m]);
  }
}

const Logs& StepMeans::logs() & noexcept {
  const double count = examples_ > 0 ? examples_ : 1;
  auto name = names_.begin();
  const auto set = [&](double value) { logs_.set(*name++, static_cast<float>(value)); };  // Of a name that is there.
  set(loss_ / count);
  if (losses_.size() > 1)
    for (const double loss : losses_) set(loss / count);
  for (const Metric& metric : metrics_) set(metric.result());
  return logs_;
}

Logs StepMeans::logs() && noexcept {
  logs();
  return std::move(logs_);
}

}  // namespace plimsoll::internal
