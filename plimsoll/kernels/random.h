// Random numbers for tensors: a function of key, offset and shape only, so that any of them can be drawn again.
//
//   RandomState state = {.key = seed, .offset = 0};
//   random_normal(state, 0, 1, out);
//   state.offset += random_blocks(out.size());     // Where the next fill starts.
//
// The results depend neither on the number of threads nor on the dtype's width, up to rounding: f16, bf16 and f64 hold
// the same draws as f32.
// Thread safety: any thread. Cost: no allocation, never throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/api.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

struct RandomState {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;  // In blocks of four words, as in Philox.
};

// Blocks that a fill of this many elements uses up.
constexpr std::uint64_t random_blocks(std::size_t elements) noexcept { return divide_up<std::uint64_t>(elements, 4); }

// [low, high). Floats: a multiple of 2^-24 of the range (f16 and bf16 may
// round up to `high`). Integers: every one equally likely up to 2^-32.
PLIMSOLL_API void random_uniform(RandomState state, double low, double high, const TensorView& out) noexcept;
PLIMSOLL_API void random_uniform_integers(RandomState state, std::int64_t low, std::int64_t high,
                                          const TensorView& out) noexcept;
// Floats only.
PLIMSOLL_API void random_normal(RandomState state, double mean, double deviation, const TensorView& out) noexcept;
// Within two deviations of the mean: values outside are drawn again. Floats only.
PLIMSOLL_API void random_truncated_normal(RandomState state, double mean, double deviation,
                                          const TensorView& out) noexcept;
// 1 with the probability, else 0. All dtypes.
PLIMSOLL_API void random_bernoulli(RandomState state, double probability, const TensorView& out) noexcept;

}  // namespace plimsoll::internal
