// Losses of rows, fused with their gradients with respect to the predictions.
//
//   LossOutputs out = {.loss = loss, .gradient = gradient, .scale = 1.0 / rows};   // Both in one pass; or one of them.
//   sparse_softmax_cross_entropy(logits, labels, out);   // logits [rows, classes], labels [rows] of i32 or i64
//   squared_error(predictions, targets, out);            // Both [rows, columns]; loss [rows]: the mean over a row
//
// Predictions are [..., columns], viewed as rows; loss has one element per row. Reshape to [n, 1] for a loss per
// element. Requires f32 or f64, one dtype for all but integer labels, columns > 0; the gradient may overwrite the
// predictions, nothing else overlaps. Sums within a row of more than 512 are taken in blocks, between them in f64.
// Thread safety: any thread. Cost: no allocation, never throws, split by shape only.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// The results to compute; views without an address are skipped.
struct LossOutputs {
  TensorView loss;           // [rows]
  TensorView gradient;       // As the predictions: the derivative of scale * sum of upstream[row] loss[row].
  ConstTensorView upstream;  // [rows]; without an address all ones.
  double scale = 1;          // For the gradient only.
};

// -log softmax(logits)[label]. A label outside [0, classes) makes the row's loss and gradient NaN.
PLIMSOLL_API void sparse_softmax_cross_entropy(const ConstTensorView& logits, const ConstTensorView& labels,
                                               const LossOutputs& out) noexcept;

// -sum of targets log softmax(logits). Targets as the logits; they need not sum to 1, and the gradient is exact when
// they do not: softmax(logits) sum(targets) - targets.
PLIMSOLL_API void softmax_cross_entropy(const ConstTensorView& logits, const ConstTensorView& targets,
                                        const LossOutputs& out) noexcept;

// Mean over the row of max(x, 0) - x z + log(1 + exp(-|x|)), for logits x and targets z.
PLIMSOLL_API void sigmoid_cross_entropy(const ConstTensorView& logits, const ConstTensorView& targets,
                                        const LossOutputs& out) noexcept;

// Means over the row, of e = prediction - target: e^2; |e| (its derivative at 0 is 0);
// e^2 / 2 where |e| <= delta, else delta |e| - delta^2 / 2.
PLIMSOLL_API void squared_error(const ConstTensorView& predictions, const ConstTensorView& targets,
                                const LossOutputs& out) noexcept;
PLIMSOLL_API void absolute_error(const ConstTensorView& predictions, const ConstTensorView& targets,
                                 const LossOutputs& out) noexcept;
PLIMSOLL_API void huber(const ConstTensorView& predictions, const ConstTensorView& targets, double delta,
                        const LossOutputs& out) noexcept;

}  // namespace plimsoll::internal
