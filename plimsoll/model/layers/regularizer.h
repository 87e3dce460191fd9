// Regularizer and Constraint: a penalty on a weight that is added to the loss, and a condition enforced after each
// step.
//
//   layers::Dense(16, {.kernel_regularizer = Regularizer::l2(1e-4), .kernel_constraint = Constraint::max_norm(3)})
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// l1 * sum(|w|) + l2 * sum(w^2). Throws InvalidArgument for factors that are negative or not finite.
class PLIMSOLL_API Regularizer {
 public:
  Regularizer() = default;             // None.
  Regularizer(std::string_view name);  // "l1", "l2", "l1_l2", each with Keras' 0.01.
  Regularizer(const char* name) : Regularizer(std::string_view(name)) {}
  static Regularizer l1(double factor) { return l1_l2(factor, 0); }
  static Regularizer l2(double factor) { return l1_l2(0, factor); }
  static Regularizer l1_l2(double l1, double l2);

  bool is_set() const noexcept { return l1_ > 0 || l2_ > 0; }
  double l1() const noexcept { return l1_; }
  double l2() const noexcept { return l2_; }
  Tensor operator()(const Tensor& weight) const;  // A scalar.

 private:
  double l1_ = 0, l2_ = 0;
};

// Enforced after each step: non_neg, unit_norm, max_norm, min_max_norm; norms along one axis (0: of each column).
class PLIMSOLL_API Constraint {
 public:
  enum class Kind : unsigned char { kNone, kNonNegative, kUnitNorm, kMaxNorm, kMinMaxNorm };

  Constraint() = default;             // None.
  Constraint(std::string_view name);  // "non_neg", "unit_norm", "max_norm", "min_max_norm", with Keras' numbers.
  Constraint(const char* name) : Constraint(std::string_view(name)) {}
  static Constraint non_neg() { return {Kind::kNonNegative, 0, 0, 0, 0}; }
  static Constraint unit_norm(std::int64_t axis = 0) { return {Kind::kUnitNorm, 1, 1, 1, axis}; }
  static Constraint max_norm(double max = 2, std::int64_t axis = 0) { return {Kind::kMaxNorm, 0, max, 1, axis}; }
  static Constraint min_max_norm(double min = 0, double max = 1, double rate = 1, std::int64_t axis = 0) {
    return {Kind::kMinMaxNorm, min, max, rate, axis};
  }

  bool is_set() const noexcept { return kind_ != Kind::kNone; }
  Kind kind() const noexcept { return kind_; }
  double min() const noexcept { return min_; }
  double max() const noexcept { return max_; }
  double rate() const noexcept { return rate_; }
  std::int64_t axis() const noexcept { return axis_; }
  // In place, without an allocation, because a step that has begun must not fail. Requires f32 or f64.
  void apply(const TensorView& weight) const noexcept;

 private:
  Constraint(Kind kind, double min, double max, double rate, std::int64_t axis)
      : kind_(kind), min_(min), max_(max), rate_(rate), axis_(axis) {}

  Kind kind_ = Kind::kNone;
  double min_ = 0, max_ = 0, rate_ = 1;
  std::int64_t axis_ = 0;
};

}  // namespace plimsoll
