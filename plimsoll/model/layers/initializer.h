// Initializer: the initial values of a weight: Keras' initialisers by name, or with their parameters.
//
//   layers::Dense(16, {.kernel_initializer = "he_normal"})
//   layers::Dense(16, {.bias_initializer = Initializer::constant(0.1)})
//   Tensor w = Initializer("orthogonal").make({64, 64}, 7);          // The same seed always gives the same numbers.
//
// Names: zeros, ones, constant, random_uniform, random_normal, truncated_normal, glorot_uniform, glorot_normal,
// he_uniform, he_normal, lecun_uniform, lecun_normal, variance_scaling, orthogonal, identity. A value: cheap to copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

class PLIMSOLL_API Initializer {
 public:
  enum class Kind : unsigned char {
    kUnset,
    kConstant,
    kUniform,
    kNormal,
    kTruncatedNormal,
    kVarianceScaling,
    kOrthogonal,
    kIdentity,
  };

  Initializer() = default;  // Default: the layer's own.
  // Throws InvalidArgument for an unknown name.
  Initializer(std::string_view name);
  Initializer(const char* name) : Initializer(std::string_view(name)) {}
  Initializer(const std::string& name) : Initializer(std::string_view(name)) {}

  static Initializer constant(double value);
  static Initializer random_uniform(double low, double high);
  static Initializer random_normal(double mean, double deviation);
  static Initializer truncated_normal(double mean, double deviation);
  // `mode` is "fan_in", "fan_out" or "fan_avg"; `distribution` "uniform", "truncated_normal" or "untruncated_normal".
  static Initializer variance_scaling(double scale, std::string_view mode, std::string_view distribution);
  static Initializer orthogonal(double gain = 1);
  static Initializer identity(double gain = 1);
  Initializer with_seed(std::uint64_t seed) const;

  bool is_set() const noexcept { return kind_ != Kind::kUnset; }
  Initializer or_else(const Initializer& other) const { return is_set() ? *this : other; }

  // Makes an f32 tensor. Its own seed takes precedence over `seed`; without either it draws from the process's stream.
  // Throws InvalidArgument for shapes it cannot fill (orthogonal and identity need matrices).
  Tensor make(const Shape& shape, std::optional<std::uint64_t> seed = {}) const;

  // For code that writes it to a file.
  Kind kind() const noexcept { return kind_; }
  double first() const noexcept { return first_; }    // The value, low, mean, scale or gain.
  double second() const noexcept { return second_; }  // High or deviation.
  const std::string& mode() const noexcept { return mode_; }
  const std::string& distribution() const noexcept { return distribution_; }
  std::optional<std::uint64_t> seed() const noexcept { return seed_; }

 private:
  Initializer(Kind kind, double first, double second) : kind_(kind), first_(first), second_(second) {}
  Tensor make_scaled(const Shape& shape, const std::optional<std::uint64_t>& seed) const;

  Kind kind_ = Kind::kUnset;
  double first_ = 0, second_ = 0;
  std::string mode_ = {}, distribution_ = {};  // For variance scaling.
  std::optional<std::uint64_t> seed_ = {};
};

}  // namespace plimsoll
