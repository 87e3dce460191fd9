// Losses by class numbers.
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll::internal {
namespace {

// log_probabilities [batch, classes, places ...], labels [batch, places ...]; by weights of the classes.
Tensor negative_log_likelihood(const OnnxNode& node, const Tensor& log_probabilities, const Tensor& labels,
                               const Tensor& weights) {
  const std::int64_t classes = log_probabilities.shape()[1];
  Tensor chosen = labels.cast(i64), counted;
  if (node.find("ignore_index")) {
    counted = not_equal(chosen, node.integer("ignore_index", 0));
    chosen = where(counted, chosen, zeros_like(chosen));
  }
  const Tensor picked = take_along_axis(log_probabilities, chosen.expand_dims(1), 1).squeeze({1});
  Tensor weight;
  if (!weights.is_empty_handle()) weight = gather(weights, clip(chosen, 0, classes - 1));
  if (!counted.is_empty_handle()) {
    const Tensor mask = counted.cast(log_probabilities.dtype());
    weight = weight.is_empty_handle() ? mask : weight * mask;
  }
  Tensor loss = -picked;
  if (!weight.is_empty_handle()) loss = loss * weight;
  const std::string reduction = node.text("reduction", "mean");
  if (reduction == "none") return loss;
  if (reduction == "sum") return sum(loss);
  return weight.is_empty_handle() ? mean(loss) : sum(loss) / sum(weight);
}

void negative_log_likelihood_loss(OnnxNode& node) {
  node.give(negative_log_likelihood(node, node.in(0), node.in(1), node.in_or(2)));
}

void softmax_cross_entropy_loss(OnnxNode& node) {
  const Tensor log_probabilities = log_softmax(node.in(0), 1);
  node.give(0, negative_log_likelihood(node, log_probabilities, node.in(1), node.in_or(2)));
  node.give(1, log_probabilities);
}

constexpr OnnxOperator kLossRows[] = {
    {"NegativeLogLikelihoodLoss", 12, kNewest, negative_log_likelihood_loss},
    {"SoftmaxCrossEntropyLoss", 12, kNewest, softmax_cross_entropy_loss},
};

}  // namespace

OnnxOperators onnx_loss_operators() { return kLossRows; }

}  // namespace plimsoll::internal
