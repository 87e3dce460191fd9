#include "plimsoll/kernels/random.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/philox.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 2048;  // Blocks of four elements.

using Four = std::array<float, 4>;

// Calls draw(position) for each block of four elements and converts the four to the output's dtype.
template <class Draw>
void fill(const TensorView& out, Draw draw) noexcept {
  const auto n = static_cast<std::int64_t>(out.size());
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* y = out.data<T>();
    parallel_for(divide_up(n, 4), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const auto values = draw(static_cast<std::uint64_t>(block));
        for (std::int64_t i = 0; i < std::min<std::int64_t>(4, n - block * 4); ++i)
          y[block * 4 + i] = static_cast<T>(values[static_cast<std::size_t>(i)]);
      }
    });
  });
}

Four normals(const PhiloxBlock& words) noexcept {
  const auto [a, b] = normal_floats(words[0], words[1]);
  const auto [c, d] = normal_floats(words[2], words[3]);
  return {a, b, c, d};
}

std::array<double, 4> scaled(const Four& values, double factor, double offset) noexcept {
  std::array<double, 4> result;
  for (std::size_t i = 0; i < 4; ++i) result[i] = values[i] * factor + offset;
  return result;
}

}  // namespace

void random_uniform(RandomState state, double low, double high, const TensorView& out) noexcept {
  PLIMSOLL_CHECK(is_floating(out.dtype()));
  const Philox random(state.key, state.offset);
  // In f32 the largest draw could round up to `high`; it is replaced by the value below.
  const float below = std::nextafter(static_cast<float>(high), static_cast<float>(low));
  fill(out, [&](std::uint64_t block) {
    const PhiloxBlock words = random.block(state.offset + block);
    Four values;
    for (std::size_t i = 0; i < 4; ++i) {
      values[i] = static_cast<float>(low + (high - low) * static_cast<double>(uniform_float(words[i])));
      if (low < high && !(values[i] < high)) values[i] = below;
    }
    return values;
  });
}

void random_uniform_integers(RandomState state, std::int64_t low, std::int64_t high, const TensorView& out) noexcept {
  PLIMSOLL_CHECK(is_integer(out.dtype()) && low < high);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const Philox first(state.key, 0), second(state.key, 0, 1);  // The high and the low words.
  fill(out, [&](std::uint64_t block) {
    const PhiloxBlock upper = first.block(state.offset + block), lower = second.block(state.offset + block);
    std::array<std::int64_t, 4> values;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t word = (std::uint64_t{upper[i]} << 32) | lower[i];
      const std::uint64_t step = static_cast<std::uint64_t>((static_cast<__uint128_t>(word) * range) >> 64);
      values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
    }
    return values;
  });
}

void random_normal(RandomState state, double mean, double deviation, const TensorView& out) noexcept {
  PLIMSOLL_CHECK(is_floating(out.dtype()));
  const Philox random(state.key);
  fill(out, [&](std::uint64_t block) { return scaled(normals(random.block(state.offset + block)), deviation, mean); });
}

void random_truncated_normal(RandomState state, double mean, double deviation, const TensorView& out) noexcept {
  PLIMSOLL_CHECK(is_floating(out.dtype()));
  fill(out, [&](std::uint64_t block) {
    Four values = normals(Philox(state.key).block(state.offset + block));
    for (std::uint64_t stream = 1; stream < 64; ++stream) {  // Each try keeps 95 %: after 64 nothing is left.
      if (std::all_of(values.begin(), values.end(), [](float v) { return std::fabs(v) <= 2; })) break;
      const Four again = normals(Philox(state.key, 0, stream).block(state.offset + block));
      for (std::size_t i = 0; i < 4; ++i)
        if (std::fabs(values[i]) > 2) values[i] = again[i];
    }
    return scaled(values, deviation, mean);
  });
}

void random_bernoulli(RandomState state, double probability, const TensorView& out) noexcept {
  const Philox random(state.key);
  fill(out, [&](std::uint64_t block) {
    const PhiloxBlock words = random.block(state.offset + block);
    Four values;
    for (std::size_t i = 0; i < 4; ++i) values[i] = uniform_float(words[i]) < probability ? 1.f : 0.f;
    return values;
  });
}

}  // namespace plimsoll::internal
