// LossLoops: the innermost loops of loss.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

enum ElementLoss { kSigmoidCrossEntropy, kSquaredError, kAbsoluteError, kHuber, kNumElementLosses };

inline constexpr std::int64_t kLossTile = 512;  // Elements per call of `values`.

template <class T>
struct LossLoopsOf {
  // For n elements: values[i] = loss(x[i], y[i]), gradient[i] = factor * its derivative. Either may be null.
  void (*elements[kNumElementLosses])(const T* x, const T* y, std::int64_t n, T* values, T* gradient, T factor,
                                      T delta);
  double (*sum)(const T* x, std::int64_t n);  // For up to kLossTile elements.
  // For a row: the sum of exp(x - shift), which `e` receives unless null; the sums of y and of (x - shift) y.
  double (*exp_sum)(const T* x, std::int64_t n, T shift, T* e);
  void (*weigh)(const T* x, const T* y, std::int64_t n, T shift, double* sum, double* product);
  void (*scale_minus)(T* e, const T* y, std::int64_t n, T scale, T factor);  // e = e scale - y factor; y may be null.
};

struct LossLoops {
  LossLoopsOf<float> f32;
  LossLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(LossLoops, loss_loops)

template <class T>
const LossLoopsOf<T>& loss_loops_of() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return loss_loops().f32;
  else
    return loss_loops().f64;
}

}  // namespace plimsoll::internal
