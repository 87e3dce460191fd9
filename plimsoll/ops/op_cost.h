// The cost of ops that multiply, for Op::cost(): bytes moved, and a constant per multiplication.
//
//   std::uint64_t cost(const Specs& in, const SpecList& out) const override {
//     return Op::cost(in, out) + multiplication_cost(out[0].shape.size() * inner);
//   }
//
// Fitted once to this library's kernels on steps of real models (docs/recompute.md): a byte of an elementwise op took
// 12 to 20 ps, a multiplication in a product 12, in a convolution 7 to 13, in a recurrence 9 to 12. So they count the
// same. In attention, which also computes exponentials, one took 22.
#pragma once

#include <cstdint>

namespace plimsoll::internal {

inline constexpr std::uint64_t kMultiplicationCost = 1;           // In bytes moved.
inline constexpr std::uint64_t kAttentionMultiplicationCost = 2;  // The same, for scores.

inline constexpr std::uint64_t kExponentialCost = 30;  // In bytes moved, in a loss: each takes about 0.4 ns.

constexpr std::uint64_t multiplication_cost(std::uint64_t count) { return kMultiplicationCost * count; }

}  // namespace plimsoll::internal
