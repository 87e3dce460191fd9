// OptimizerLoops: the innermost loops of optimizer.h, one table per instruction set, as in loops.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/loops.h"

namespace plimsoll {

enum UpdateRule {
  kUpdateSgd,
  kUpdateMomentum,
  kUpdateRmsprop,
  kUpdateRmspropCentered,
  kUpdateRmspropMomentum,
  kUpdateRmspropCenteredMomentum,
  kUpdateAdagrad,
  kUpdateAdadelta,
  kUpdateAdadeltaPrevious,
  kUpdateAdam,
  kUpdateAdamax,
  kNumUpdateRules
};

// What the factors mean is said at each rule's loop.
struct UpdateArrays {
  void* parameter;
  const void* gradient;
  void* slots[3];
};
using UpdateLoop = void (*)(const UpdateArrays& arrays, const double* factors, std::int64_t n);

struct OptimizerLoops {
  UpdateLoop updates[kNumUpdateRules][2];  // f32, f64.
  double (*sum_of_squares[2])(const void* x, std::int64_t n);
  void (*scale[2])(void* x, std::int64_t n, double factor);
};

const OptimizerLoops& optimizer_loops() noexcept;
const OptimizerLoops& optimizer_loops_baseline() noexcept;
const OptimizerLoops& optimizer_loops_avx2() noexcept;
const OptimizerLoops& optimizer_loops_avx512() noexcept;

}  // namespace plimsoll
