// The sparse cross entropy of a dense layer's logits, in slices, for graph planners: logits are never written as a
// whole (kernels/vocabulary_loss.h), to the same bits. The gradient computes them once more.
//
//   VocabularyLoss           in: labels, x, w and, if it has one, bias        out: losses, statistics, [argmax]
//   VocabularyLossGradient   in: labels, x, w, statistics, upstream, [bias]   out: dw, [dx], [db]
#pragma once

#include <memory>

#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// Whether slices give the same bits and are worth it: x [.., inner] and w [inner, classes].
PLIMSOLL_API bool has_vocabulary_loss(const TensorSpec& x, const TensorSpec& w);

PLIMSOLL_API std::unique_ptr<Op> vocabulary_loss(bool with_argmax);

struct VocabularyGradientParts {
  bool dx = false, db = false, bias = false;
  bool operator==(const VocabularyGradientParts&) const = default;
};
PLIMSOLL_API std::unique_ptr<Op> vocabulary_loss_gradient(const VocabularyGradientParts& parts);

}  // namespace plimsoll::internal
