// scaled_dot_product_attention: softmax(scale q k^T + mask) v without ever holding all scores.
//
//   scaled_dot_product_attention(q, k, v, {.causal = true})       // y has q's shape
//   scaled_dot_product_attention(q, k, v, {.mask = mask, .sequence_first = true})
//
// k [batch, heads, keys, depth], v [batch, heads, keys, columns]; y has q's rows and v's columns. With sequence_first
// all are [batch, queries or keys, heads, ..], which saves the transposes after a projection. The mask is [batch or 1,
// heads or 1, queries or 1, keys]: booleans, where false is not attended to, or floats that are added to the scaled
// scores; their gradient is Unsupported. A row that may attend to nothing gives zeros, and gradients of zero. Scratch
// is a few blocks of scores, whatever the sequence lengths; a tape keeps q, k, v, one number per row and y, which is
// recomputed instead while there are at most half as many keys as a row is wide and a product reads it. Takes f32 and
// f64. Throws InvalidArgument for shapes that do not match, naming them. Second derivatives are Unsupported.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct AttentionOptions {
  Tensor mask = {};     // An empty handle means none.
  bool causal = false;  // Query i attends to keys 0 ... i.
  double scale = 0;     // 0: 1 / sqrt(depth).
  bool sequence_first = false;
};

PLIMSOLL_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                 const AttentionOptions& options = {});

}  // namespace plimsoll
