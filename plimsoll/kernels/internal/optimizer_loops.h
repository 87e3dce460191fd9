// OptimizerLoops: the innermost loops of optimizer.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

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

// Each rule's loop explains its factors.
struct UpdateArrays {
  void* parameter;
  const void* gradient;
  void* slots[3];
};
using UpdateLoop = void (*)(const UpdateArrays& arrays, const double* factors, std::int64_t n);

struct OptimizerLoops {
  UpdateLoop updates[kNumUpdateRules][2];  // f32, f64.
  double (*sum_of_squares[2])(const void* x, std::int64_t n);
};

PLIMSOLL_LOOPS(OptimizerLoops, optimizer_loops)

}  // namespace plimsoll::internal
