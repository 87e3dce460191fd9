// Losses as in Keras; the common ones are fused with their gradients.
//
//   mean_squared_error(targets, predictions)                          // The mean over everything: a scalar.
//   binary_cross_entropy(targets, logits, {.from_logits = true})
//   sparse_categorical_cross_entropy(labels, logits, {.reduction = Reduction::none, .from_logits = true})
//
// Predictions are [.., n]; a loss is one number for each row of n (its mean over the row unless stated), reduced over
// the rows: `mean` divides by their number, `none` returns all, [..]. Targets have the predictions' shape and dtype;
// labels are i32 or i64, [..]. Takes floats; f16 and bf16 are computed in f32. Errors (squared, absolute, huber) and
// cross entropies from logits are one pass forward and one back, and a tape keeps only targets and predictions; the
// others are composed of other operations. Throws InvalidArgument for shapes or dtypes that do not match, naming both,
// and for labels outside the classes.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

enum class Reduction : unsigned char { mean, sum, none };

struct LossOptions {
  Reduction reduction = Reduction::mean;
  bool from_logits = false;    // Cross entropies: the predictions are scores, before sigmoid or softmax.
  double label_smoothing = 0;  // Cross entropies but the sparse one: the share spread over all classes.
  double delta = 1;            // Huber: where the quadratic part ends.
};

PLIMSOLL_API Tensor mean_squared_error(const Tensor& targets, const Tensor& predictions,
                                       const LossOptions& options = {});
PLIMSOLL_API Tensor mean_absolute_error(const Tensor& targets, const Tensor& predictions,
                                        const LossOptions& options = {});
PLIMSOLL_API Tensor huber(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});
PLIMSOLL_API Tensor log_cosh(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});
PLIMSOLL_API Tensor mean_absolute_percentage_error(const Tensor& targets, const Tensor& predictions,
                                                   const LossOptions& options = {});
PLIMSOLL_API Tensor mean_squared_logarithmic_error(const Tensor& targets, const Tensor& predictions,
                                                   const LossOptions& options = {});
PLIMSOLL_API Tensor poisson(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});

// Probabilities are clamped to stay 1e-7 away from 0 and 1.
PLIMSOLL_API Tensor binary_cross_entropy(const Tensor& targets, const Tensor& predictions,
                                         const LossOptions& options = {});
PLIMSOLL_API Tensor categorical_cross_entropy(const Tensor& targets, const Tensor& predictions,
                                              const LossOptions& options = {});
PLIMSOLL_API Tensor sparse_categorical_cross_entropy(const Tensor& labels, const Tensor& predictions,
                                                     const LossOptions& options = {});
PLIMSOLL_API Tensor kl_divergence(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});

// Targets of hinge and squared_hinge are -1 and 1; of categorical_hinge 0 and 1.
PLIMSOLL_API Tensor hinge(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});
PLIMSOLL_API Tensor squared_hinge(const Tensor& targets, const Tensor& predictions, const LossOptions& options = {});
PLIMSOLL_API Tensor categorical_hinge(const Tensor& targets, const Tensor& predictions,
                                      const LossOptions& options = {});

// Minus the cosine of the angle between the rows: -1 when they point the same way.
PLIMSOLL_API Tensor cosine_similarity(const Tensor& targets, const Tensor& predictions,
                                      const LossOptions& options = {});

}  // namespace plimsoll
