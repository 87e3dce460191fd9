// Random tensors, from a counter-based generator: every draw can be repeated.
//
//   random_uniform({2, 3}); random_uniform({2, 3}, -1, 1); random_uniform({8}, 0, 10, {.dtype = i32})
//   random_normal({64, 10}, {.seed = 7}); random_normal({64, 10}, 0, 0.05)
//   truncated_normal({64, 10}); random_bernoulli({8}, 0.5, {.dtype = boolean})
//
// With a seed, the same call gives the same numbers. Without one, they come from one stream of the process, which
// config::set_seed() restarts; without that call the stream differs in every process. Draws do not depend on the number
// of threads; other float dtypes hold the f32 numbers, rounded.
// Throws InvalidArgument for shapes with unknown sizes, dtypes that a distribution does not support and empty ranges.
// Thread safety: any thread; without a seed, the order of calls decides which draw gets which part of the stream.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct RandomOptions {
  std::optional<std::uint64_t> seed = {};
  DType dtype = f32;
};

// [low, high), or [0, 1). Integers need a range; f16 and bf16 may round up to `high`.
PLIMSOLL_API Tensor random_uniform(const Shape& shape, const RandomOptions& options = {});
PLIMSOLL_API Tensor random_uniform(const Shape& shape, const Number& low, const Number& high,
                                   const RandomOptions& options = {});
// Floats only, like the next.
PLIMSOLL_API Tensor random_normal(const Shape& shape, const RandomOptions& options = {});
PLIMSOLL_API Tensor random_normal(const Shape& shape, double mean, double deviation, const RandomOptions& options = {});
// Normal, but within two deviations of the mean.
PLIMSOLL_API Tensor truncated_normal(const Shape& shape, const RandomOptions& options = {});
PLIMSOLL_API Tensor truncated_normal(const Shape& shape, double mean, double deviation,
                                     const RandomOptions& options = {});
// 1 with the probability, else 0; any dtype.
PLIMSOLL_API Tensor random_bernoulli(const Shape& shape, double probability, const RandomOptions& options = {});

// The attributes of an op that draws: where its numbers begin.
struct RandomDraw {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t ticket = 0;  // For a node without a seed: drawn at each run, the same for all nodes with this number.
  bool operator==(const RandomDraw&) const = default;
};
// With a seed, its beginning; otherwise the next part of the process's stream, for this many elements. `later`: only a
// ticket.
PLIMSOLL_API RandomDraw draw_random(const std::optional<std::uint64_t>& seed, std::size_t elements, bool later = false);

// A sequence of seeds, each a function of a base and of how many were taken. Functions take a new one at each run.
struct SeedStream {
  std::uint64_t taken = 0;
};
PLIMSOLL_API std::uint64_t seed_at(std::uint64_t base, std::uint64_t number) noexcept;
// The next seed of the stream. While a function is traced: a number that represents the seed that each run will take.
PLIMSOLL_API std::uint64_t take_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base);

}  // namespace plimsoll
