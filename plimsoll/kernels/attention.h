// Scaled dot-product attention, softmax(scale q k^T + mask) v, without ever holding all scores; and its gradient.
//
//   attention({.causal = true}, {.q = q, .k = k, .v = v}, {.y = y, .log_sum = log_sum}, scratch);
//   attention_gradient({.causal = true}, inputs, y, log_sum, dy, {dq, dk, dv}, scratch);
//
// q [batch, heads, queries, depth], k [batch, heads, keys, depth], v [batch, heads, keys, columns]; y has q's rows and
// v's columns. With sequence_first all of them are [batch, queries or keys, heads, ..] instead, as a projection leaves
// them. Scores are computed 64 by 64 and folded in at once (running maximum and sum); for each row only the logarithm
// of the sum of exponentials is kept, from which the gradient recomputes the scores. A row that may attend to nothing
// yields zeros, and gradients of zero. Requires f32 or f64, one dtype for all but the boolean mask, no overlap. Thread
// safety: any thread, with its own scratch, which does not grow with the sequences. No allocation, never throws; the
// split depends only on the shape.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct AttentionRule {
  double scale = 0;     // 0: 1 / sqrt(depth).
  bool causal = false;  // Query i attends to keys 0 ... i.
  bool sequence_first = false;
  bool operator==(const AttentionRule&) const = default;
};

// Masks are [batch or 1, heads or 1, queries or 1, keys]; a view without an address means no mask. Both may be given.
struct AttentionInputs {
  ConstTensorView q, k, v;
  ConstTensorView additive;  // Added to the scaled scores; it has no gradient here.
  ConstTensorView allowed;   // Booleans: false is not attended to.
};
struct AttentionOutputs {
  TensorView y;
  TensorView log_sum;  // [batch, heads, queries] in either layout, for the gradient; optional.
};
struct AttentionGradients {
  TensorView q, k, v;
};

// Aligned to 64 bytes.
PLIMSOLL_API std::size_t attention_scratch_bytes(const Shape& q, const Shape& k, const Shape& v, DType dtype) noexcept;
PLIMSOLL_API std::size_t attention_gradient_scratch_bytes(const Shape& q, const Shape& k, const Shape& v,
                                                          DType dtype) noexcept;

PLIMSOLL_API void attention(const AttentionRule& options, const AttentionInputs& in, const AttentionOutputs& out,
                            std::span<std::byte> scratch) noexcept;

// Sets all three gradients. Heads run in parallel, each in one thread.
PLIMSOLL_API void attention_gradient(const AttentionRule& options, const AttentionInputs& in, const ConstTensorView& y,
                                     const ConstTensorView& log_sum, const ConstTensorView& dy,
                                     const AttentionGradients& out, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
