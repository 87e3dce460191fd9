#include "plimsoll/model/layers/regularizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll {
namespace {

struct Limits {
  Constraint::Kind kind;
  double min, max, rate;
};

// The factor for a vector of this length; Keras' formulas, with its 1e-7.
double scale_for(const Limits& limits, double norm) noexcept {
  constexpr double kEpsilon = 1e-7;
  if (limits.kind == Constraint::Kind::kUnitNorm) return 1 / (norm + kEpsilon);
  const double wanted = std::clamp(norm, limits.min, limits.max);
  return (limits.rate * wanted + (1 - limits.rate) * norm) / (norm + kEpsilon);
}

template <class T>
void scale_norms(T* data, const Shape& shape, std::size_t axis, const Limits& limits) noexcept {
  std::int64_t inner = 1, outer = 1;
  for (std::size_t a = 0; a < shape.rank(); ++a) (a < axis ? outer : inner) *= a == axis ? 1 : shape[a];
  const std::int64_t count = shape[axis];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      T* first = data + o * count * inner + i;
      double squares = 0;
      for (std::int64_t k = 0; k < count; ++k) squares += static_cast<double>(first[k * inner]) * first[k * inner];
      const double scale = scale_for(limits, std::sqrt(squares));
      for (std::int64_t k = 0; k < count; ++k) first[k * inner] = static_cast<T>(first[k * inner] * scale);
    }
  }
}

template <class T>
void hold(T* data, const TensorView& weight, const Limits& limits, std::int64_t axis) noexcept {
  if (limits.kind == Constraint::Kind::kNonNegative) {
    for (std::size_t i = 0; i < weight.size(); ++i) data[i] = std::max(data[i], T{0});
    return;
  }
  const auto rank = static_cast<std::int64_t>(weight.shape().rank());
  const std::int64_t resolved = axis < 0 ? axis + rank : axis;
  if (resolved >= 0 && resolved < rank) scale_norms(data, weight.shape(), static_cast<std::size_t>(resolved), limits);
}

}  // namespace

Regularizer::Regularizer(std::string_view name) {
  if (name == "l1")
    *this = l1(0.01);
  else if (name == "l2")
    *this = l2(0.01);
  else if (name == "l1_l2" || name == "l1l2")
    *this = l1_l2(0.01, 0.01);
  else
    throw InvalidArgument(fmt::format("regularizer: \"{}\" is none; use \"l1\", \"l2\" or \"l1_l2\"", name));
}

Regularizer Regularizer::l1_l2(double l1, double l2) {
  if (!(l1 >= 0 && std::isfinite(l1) && l2 >= 0 && std::isfinite(l2)))
    throw InvalidArgument(fmt::format("regularizer: factors {} and {}; give finite numbers of 0 or more", l1, l2));
  Regularizer result;
  result.l1_ = l1;
  result.l2_ = l2;
  return result;
}

Tensor Regularizer::operator()(const Tensor& weight) const {
  if (l1_ <= 0) return square(weight).sum() * l2_;
  const Tensor first = abs(weight).sum() * l1_;
  return l2_ > 0 ? first + square(weight).sum() * l2_ : first;
}

Constraint::Constraint(std::string_view name) {
  if (name == "non_neg")
    *this = non_neg();
  else if (name == "unit_norm")
    *this = unit_norm();
  else if (name == "max_norm")
    *this = max_norm();
  else if (name == "min_max_norm")
    *this = min_max_norm();
  else
    throw InvalidArgument(fmt::format(
        "constraint: \"{}\" is none; use \"non_neg\", \"unit_norm\", \"max_norm\" or \"min_max_norm\"", name));
}

void Constraint::apply(const TensorView& weight) const noexcept {
  const Limits limits{kind_, min_, max_, rate_};
  if (weight.dtype() == f64) return hold(weight.data<double>(), weight, limits, axis_);
  hold(weight.data<float>(), weight, limits, axis_);
}

}  // namespace plimsoll
