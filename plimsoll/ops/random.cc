#include "plimsoll/ops/random.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <random>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/kernels/random.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {
namespace {

// Separates the stream of a seed from the draws of calls with the same seed.
constexpr std::uint64_t kStreamMark = 0x706C696D736F6C6C;

std::uint64_t random_key() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

class ProcessStream {
 public:
  RandomDraw draw(std::size_t elements) {
    const std::lock_guard lock(mutex_);
    const config::SeedState now = config::seed_state();
    if (!begun_ || now.version != version_) {
      next_ = {.key = now.seed ? *now.seed ^ kStreamMark : random_key(), .offset = 0};
      version_ = now.version;
      begun_ = true;
    }
    const RandomDraw drawn = next_;
    next_.offset += random_blocks(elements);
    return drawn;
  }

 private:
  std::mutex mutex_;
  RandomDraw next_;            // Guarded by mutex_, as the rest.
  std::uint64_t version_ = 0;  // Of the seed.
  bool begun_ = false;
};

enum class Distribution : unsigned char { kUniform, kNormal, kTruncatedNormal, kBernoulli };

const char* name_of(Distribution distribution) {
  constexpr const char* kNames[] = {"random_uniform", "random_normal", "truncated_normal", "random_bernoulli"};
  return kNames[static_cast<std::size_t>(distribution)];
}

class Random final : public OpOf<Random> {
 public:
  Random(Distribution distribution, const Shape& shape, DType dtype, Number first, Number second,
         RandomDraw draw) noexcept
      : shape_(shape), first_(first), second_(second), draw_(draw), distribution_(distribution), dtype_(dtype) {}
  const char* name() const noexcept override { return name_of(distribution_); }
  void infer(const Specs&, SpecList& out) const override { out.add(shape_, dtype_); }
  void run(const OpRun& run) const noexcept override;
  RandomDraw* draw() noexcept override { return &draw_; }
  OpFacts facts() const noexcept override { return {.is_random = true, .has_gradient = false}; }
  bool operator==(const Random&) const = default;

 private:
  Shape shape_;
  Number first_, second_;  // Low and high; mean and deviation; the probability.
  RandomDraw draw_;
  Distribution distribution_;
  DType dtype_;
};

void Random::run(const OpRun& run) const noexcept {
  const RandomState state{.key = draw_.key, .offset = draw_.offset};
  const TensorView& out = run.out[0];
  const double first = first_.as_double(), second = second_.as_double();
  switch (distribution_) {
    case Distribution::kUniform:
      if (is_floating(dtype_)) return internal::random_uniform(state, first, second, out);
      return random_uniform_integers(state, static_cast<std::int64_t>(first_.to(i64)),
                                     static_cast<std::int64_t>(second_.to(i64)), out);
    case Distribution::kNormal:
      return internal::random_normal(state, first, second, out);
    case Distribution::kTruncatedNormal:
      return random_truncated_normal(state, first, second, out);
    case Distribution::kBernoulli:
      return internal::random_bernoulli(state, first, out);
  }
}

Tensor drawn(Distribution distribution, const Shape& given, Number first, Number second, const RandomOptions& options) {
  const Shape shape = given.or_scalar();
  if (!shape.is_known())
    throw InvalidArgument(
        fmt::format("{}: shape {} has unknown sizes; give every size", name_of(distribution), shape.to_string()));
  return execute(Random(distribution, shape, options.dtype, first, second, draw_random(options.seed, shape.size())));
}

[[noreturn]] void refuse(Distribution distribution, DType dtype, const char* instead) {
  throw InvalidArgument(
      fmt::format("{}: is not defined for {}; {}", name_of(distribution), dtype_name(dtype), instead));
}

void require_integers_between(const Number& low, const Number& high, DType dtype) {
  const auto first = static_cast<std::int64_t>(low.to(i64)), end = static_cast<std::int64_t>(high.to(i64));
  if (std::isnan(low.as_double()) || std::isnan(high.as_double()) || first >= end)
    throw InvalidArgument(
        fmt::format("random_uniform: no integers from {} up to, not with, {}", low.as_double(), high.as_double()));
  const auto held = [&](std::int64_t value) {
    return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T>)
        return value >= static_cast<std::int64_t>(std::numeric_limits<T>::lowest()) &&
               value <= static_cast<std::int64_t>(std::numeric_limits<T>::max());
      else
        return false;
    });
  };
  if (!held(first) || !held(end - 1))
    throw InvalidArgument(
        fmt::format("random_uniform: {} does not hold all from {} to {}", dtype_name(dtype), first, end - 1));
}

Tensor normals(Distribution distribution, const Shape& shape, double mean, double deviation,
               const RandomOptions& options) {
  if (!is_floating(options.dtype)) refuse(distribution, options.dtype, "draw floats and cast them");
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation < 0)
    throw InvalidArgument(fmt::format("{}: mean {} and deviation {}; give finite ones, the deviation 0 or more",
                                      name_of(distribution), mean, deviation));
  return drawn(distribution, shape, mean, deviation, options);
}

}  // namespace

RandomDraw draw_random(const std::optional<std::uint64_t>& seed, std::size_t elements, bool later) {
  static std::atomic<std::uint64_t> tickets{0};
  if (!seed && (later || ThreadContext::current().tracer)) return {.ticket = tickets.fetch_add(1) + 1};
  static ProcessStream& stream = *new ProcessStream;  // Never destroyed: destructors elsewhere may draw.
  return seed ? RandomDraw{.key = *seed, .offset = 0} : stream.draw(elements);
}

Tensor random_uniform(const Shape& shape, const RandomOptions& options) {
  if (is_integer(options.dtype)) refuse(Distribution::kUniform, options.dtype, "give the range, low and high");
  return random_uniform(shape, 0, 1, options);
}

Tensor random_uniform(const Shape& shape, const Number& low, const Number& high, const RandomOptions& options) {
  if (options.dtype == boolean) refuse(Distribution::kUniform, boolean, "use random_bernoulli");
  if (is_integer(options.dtype)) {
    require_integers_between(low, high, options.dtype);
  } else if (!std::isfinite(low.as_double()) || !std::isfinite(high.as_double()) ||
             low.as_double() > high.as_double()) {
    throw InvalidArgument(fmt::format("random_uniform: {} to {} is not a range; give finite ends, the lower one first",
                                      low.as_double(), high.as_double()));
  }
  return drawn(Distribution::kUniform, shape, low, high, options);
}

Tensor random_normal(const Shape& shape, const RandomOptions& options) { return random_normal(shape, 0, 1, options); }
Tensor random_normal(const Shape& shape, double mean, double deviation, const RandomOptions& options) {
  return normals(Distribution::kNormal, shape, mean, deviation, options);
}

Tensor truncated_normal(const Shape& shape, const RandomOptions& options) {
  return truncated_normal(shape, 0, 1, options);
}
Tensor truncated_normal(const Shape& shape, double mean, double deviation, const RandomOptions& options) {
  return normals(Distribution::kTruncatedNormal, shape, mean, deviation, options);
}

Tensor random_bernoulli(const Shape& shape, double probability, const RandomOptions& options) {
  if (!(probability >= 0 && probability <= 1))
    throw InvalidArgument(fmt::format("random_bernoulli: the probability is {}; give 0 to 1", probability));
  return drawn(Distribution::kBernoulli, shape, probability, 0, options);
}

std::uint64_t seed_at(std::uint64_t base, std::uint64_t number) noexcept {  // SplitMix64 over both.
  std::uint64_t z = base + 0x9E3779B97F4A7C15 * (number + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::uint64_t take_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base) {
  if (Tracer* const tracer = ThreadContext::current().tracer)
    return static_cast<GraphVariables&>(*tracer).defer_seed(stream, base);
  return seed_at(base, stream->taken++);
}

}  // namespace plimsoll
