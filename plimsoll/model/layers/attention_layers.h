// MultiHeadAttention: queries look up values by keys, in several heads at once.
//
//   const LayerOutput y = layers::MultiHeadAttention(8, 32)({x, x});     // Query and value; keys are the values.
//   layers::MultiHeadAttention(8, 32, {.causal = true})({query, value, key})
//
// Query [batch, queries, features], value and key [batch, keys, ..]; the result has the query's shape. Weights have the
// names and shapes of Keras. The scores are never held all at once. A mask of the value (or of the key) excludes keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

namespace layers {

struct MultiHeadAttentionOptions {
  std::int64_t value_dim = 0;  // 0: the same as for keys.
  bool use_bias = true;
  bool causal = false;  // A query does not see keys after its own position.
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  Initializer kernel_initializer = "glorot_uniform";  // Of all four projections, like the following.
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
};

class PLIMSOLL_API MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim, const MultiHeadAttentionOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::MultiHeadAttentionOptions;

}  // namespace plimsoll
