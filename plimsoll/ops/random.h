// Random tensors, from a counter-based generator: every draw can be repeated.
//
//   random_uniform({2, 3}); random_uniform({2, 3}, -1, 1); random_uniform({8}, 0, 10, {.dtype = i32})
//   random_normal({64, 10}, {.seed = 7}); random_normal({64, 10}, 0, 0.05)
//   truncated_normal({64, 10}); random_bernoulli({8}, 0.5, {.dtype = boolean})
//
// With a seed, the same call gives the same numbers. Without, they come from one stream of the process, which
// config::set_seed() restarts it; without that call, the stream differs in every process. Draws do not depend
// on the number of threads; other float dtypes hold what f32 would, rounded.
// Throws InvalidArgument for shapes with unknown sizes, dtypes a distribution does not have and ranges that are none.
// Thread safety: any thread; without a seed, which draw gets which part of the stream is decided by their order.
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
// Floats only, as the next.
PLIMSOLL_API Tensor random_normal(const Shape& shape, const RandomOptions& options = {});
PLIMSOLL_API Tensor random_normal(const Shape& shape, double mean, double deviation, const RandomOptions& options = {});
// Normal, but within two deviations of the mean.
PLIMSOLL_API Tensor truncated_normal(const Shape& shape, const RandomOptions& options = {});
PLIMSOLL_API Tensor truncated_normal(const Shape& shape, double mean, double deviation,
                                     const RandomOptions& options = {});
// 1 with the probability, else 0; any dtype.
PLIMSOLL_API Tensor random_bernoulli(const Shape& shape, double probability, const RandomOptions& options = {});

// What an op that draws keeps as attributes: where its numbers begin.
struct RandomDraw {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t ticket = 0;  // Of a node without a seed: drawn at each run, for all that have the same number.
  bool operator==(const RandomDraw&) const = default;
};
// With a seed its beginning; else the next part of the process's stream, for so many elements. `later`: only a ticket.
PLIMSOLL_API RandomDraw draw_random(const std::optional<std::uint64_t>& seed, std::size_t elements, bool later = false);

// Seeds one after the other, each a function of a base and of how many were taken. Functions take one of a stream again
// at each run.
struct SeedStream {
  std::uint64_t taken = 0;
};
PLIMSOLL_API std::uint64_t seed_at(std::uint64_t base, std::uint64_t number) noexcept;
// The next of the stream. While a function is traced: a number that stands for the one that each run will take.
PLIMSOLL_API std::uint64_t take_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base);

}  // namespace plimsoll
