#include "plimsoll/model/layers/initializer.h"

#include <fmt/format.h>

#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

struct Fans {
  double in = 1, out = 1;
};

// Keras' rule: the last two axes are inputs and outputs, those before them a window.
Fans fans_of(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double window = 1;
  for (std::size_t axis = 0; axis + 2 < shape.rank(); ++axis) window *= static_cast<double>(shape[axis]);
  return {window * static_cast<double>(shape[shape.rank() - 2]), window * static_cast<double>(shape.back())};
}

// Makes `count` rows of `size` orthonormal, one after the other, twice for precision.
void orthonormalize(double* rows, std::int64_t count, std::int64_t size) {
  for (std::int64_t i = 0; i < count; ++i) {
    double* row = rows + i * size;
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t j = 0; j < i; ++j) {
        const double* other = rows + j * size;
        double product = 0;
        for (std::int64_t k = 0; k < size; ++k) product += row[k] * other[k];
        for (std::int64_t k = 0; k < size; ++k) row[k] -= product * other[k];
      }
    }
    double squares = 0;
    for (std::int64_t k = 0; k < size; ++k) squares += row[k] * row[k];
    const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (std::int64_t k = 0; k < size; ++k) row[k] *= scale;
  }
}

Tensor make_orthogonal(const Shape& shape, double gain, const std::optional<std::uint64_t>& seed) {
  if (shape.rank() < 2)
    throw InvalidArgument(
        fmt::format("orthogonal: shape {} has fewer than two axes; use another initializer", shape.to_string()));
  const std::int64_t columns = shape.back();
  const std::int64_t rows = columns == 0 ? 0 : static_cast<std::int64_t>(shape.size()) / columns;
  const std::int64_t count = std::min(rows, columns), size = std::max(rows, columns);
  return tidy([&] {
    const Tensor drawn = plimsoll::random_normal({count, size}, {.seed = seed, .dtype = f64});
    orthonormalize(HostWrite(drawn, HostWrite::Elements::kKept).data<double>(), count, size);
    const Tensor matrix = rows < columns ? drawn : drawn.transpose();
    return (matrix * gain).cast(f32).reshape(shape);
  });
}

}  // namespace

Initializer::Initializer(std::string_view name) {
  const auto scaling = [](double scale, const char* mode, const char* distribution) {
    return variance_scaling(scale, mode, distribution);
  };
  if (name == "zeros")
    *this = constant(0);
  else if (name == "ones")
    *this = constant(1);
  else if (name == "constant")
    *this = constant(0);
  else if (name == "random_uniform" || name == "uniform")
    *this = random_uniform(-0.05, 0.05);
  else if (name == "random_normal" || name == "normal")
    *this = random_normal(0, 0.05);
  else if (name == "truncated_normal")
    *this = truncated_normal(0, 0.05);
  else if (name == "glorot_uniform")
    *this = scaling(1, "fan_avg", "uniform");
  else if (name == "glorot_normal")
    *this = scaling(1, "fan_avg", "truncated_normal");
  else if (name == "he_uniform")
    *this = scaling(2, "fan_in", "uniform");
  else if (name == "he_normal")
    *this = scaling(2, "fan_in", "truncated_normal");
  else if (name == "lecun_uniform")
    *this = scaling(1, "fan_in", "uniform");
  else if (name == "lecun_normal" || name == "variance_scaling")
    *this = scaling(1, "fan_in", "truncated_normal");
  else if (name == "orthogonal")
    *this = orthogonal();
  else if (name == "identity")
    *this = identity();
  else
    throw InvalidArgument(
        fmt::format("initializer: \"{}\" is none; use glorot_uniform, he_normal, orthogonal, zeros, "
                    "ones or another of Keras' names",
                    name));
}

Initializer Initializer::constant(double value) { return {Kind::kConstant, value, 0}; }
Initializer Initializer::random_uniform(double low, double high) { return {Kind::kUniform, low, high}; }
Initializer Initializer::random_normal(double mean, double deviation) { return {Kind::kNormal, mean, deviation}; }
Initializer Initializer::truncated_normal(double mean, double deviation) {
  return {Kind::kTruncatedNormal, mean, deviation};
}
Initializer Initializer::orthogonal(double gain) { return {Kind::kOrthogonal, gain, 0}; }
Initializer Initializer::identity(double gain) { return {Kind::kIdentity, gain, 0}; }

Initializer Initializer::variance_scaling(double scale, std::string_view mode, std::string_view distribution) {
  if (!(scale > 0) || !std::isfinite(scale))
    throw InvalidArgument(fmt::format("variance_scaling: the scale is {}; give a finite number above 0", scale));
  if (mode != "fan_in" && mode != "fan_out" && mode != "fan_avg")
    throw InvalidArgument(
        fmt::format("variance_scaling: the mode is \"{}\"; use \"fan_in\", \"fan_out\" or \"fan_avg\"", mode));
  if (distribution == "normal") distribution = "truncated_normal";
  if (distribution != "uniform" && distribution != "truncated_normal" && distribution != "untruncated_normal")
    throw InvalidArgument(
        fmt::format("variance_scaling: the distribution is \"{}\"; use \"uniform\", "
                    "\"truncated_normal\" or \"untruncated_normal\"",
                    distribution));
  Initializer result(Kind::kVarianceScaling, scale, 0);
  result.mode_ = mode;
  result.distribution_ = distribution;
  return result;
}

Initializer Initializer::with_seed(std::uint64_t seed) const {
  Initializer result = *this;
  result.seed_ = seed;
  return result;
}

Tensor Initializer::make_scaled(const Shape& shape, const std::optional<std::uint64_t>& seed) const {
  const Fans fans = fans_of(shape);
  const double fan = mode_ == "fan_in" ? fans.in : mode_ == "fan_out" ? fans.out : (fans.in + fans.out) / 2;
  const double variance = first_ / std::max(1.0, fan);
  if (distribution_ == "uniform") {
    const double limit = std::sqrt(3 * variance);
    return plimsoll::random_uniform(shape, -limit, limit, {.seed = seed});
  }
  if (distribution_ == "untruncated_normal")
    return plimsoll::random_normal(shape, 0, std::sqrt(variance), {.seed = seed});
  constexpr double kDeviationWithinTwo = 0.87962566103423978;  // Of a normal distribution truncated at two deviations.
  return plimsoll::truncated_normal(shape, 0, std::sqrt(variance) / kDeviationWithinTwo, {.seed = seed});
}

Tensor Initializer::make(const Shape& shape, std::optional<std::uint64_t> seed) const {
  if (seed_) seed = seed_;
  switch (kind_) {
    case Kind::kUniform:
      return plimsoll::random_uniform(shape, first_, second_, {.seed = seed});
    case Kind::kNormal:
      return plimsoll::random_normal(shape, first_, second_, {.seed = seed});
    case Kind::kTruncatedNormal:
      return plimsoll::truncated_normal(shape, first_, second_, {.seed = seed});
    case Kind::kVarianceScaling:
      return make_scaled(shape, seed);
    case Kind::kOrthogonal:
      return make_orthogonal(shape, first_, seed);
    case Kind::kIdentity:
      if (shape.rank() != 2)
        throw InvalidArgument(
            fmt::format("identity: shape {} is not a matrix; use another initializer", shape.to_string()));
      return tidy([&] { return eye(shape[0], shape[1]) * first_; });
    case Kind::kUnset:
    case Kind::kConstant:
      break;
  }
  return full(shape, first_, f32);
}

}  // namespace plimsoll
