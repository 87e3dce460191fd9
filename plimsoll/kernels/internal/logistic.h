// 1 / (1 + e^-x) of a vector of floats or of one double.
#pragma once

#include <math.h>

#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll::internal {
namespace {

inline F32 logistic(F32 x) noexcept {
  const F32 e = exp_of(-absolute(x));
  return (x < 0.f ? e : splat(1.f)) / (e + 1.f);
}
inline double logistic(double x) noexcept {
  const double e = ::exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1.0) / (e + 1.0);
}

}  // namespace
}  // namespace plimsoll::internal
