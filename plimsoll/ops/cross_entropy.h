// Cross entropies of labels with logits (scores before softmax or sigmoid), without overflow.
//
//   softmax_cross_entropy_with_logits(labels, logits)         // Both [.., n]: one loss for each row, [..]
//   sparse_softmax_cross_entropy_with_logits(labels, logits)  // labels i32 or i64 [..]: the number of the class
//   sigmoid_cross_entropy_with_logits(labels, logits)         // Elementwise.
//
// Rows of labels need not sum to one. Takes floats; f16 and bf16 are computed in f32. Tapes keep only labels and
// logits, and the logits' gradient is one pass; scratch is bounded, whatever the batch size. Throws InvalidArgument for
// shapes or dtypes that do not match, naming both, and for a label outside the classes, naming it and its position.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

PLIMSOLL_API Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
PLIMSOLL_API Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
PLIMSOLL_API Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);

}  // namespace plimsoll
