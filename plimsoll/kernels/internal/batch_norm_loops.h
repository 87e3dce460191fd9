// BatchNormLoops: passes over rows of channels. Rows are dense.
#pragma once

#include <cstdint>

#include "plimsoll/base/dtype.h"
#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

// How y was computed from x: (x - mean) * scale + shift, [channels] each. A gradient counts where this is above zero,
// or everywhere when scale is null.
struct BatchNormForward {
  const void *mean, *scale, *shift;
};

struct BatchNormLoops {
  // Merges `rows` rows into the running means and sums of squared distances from them, which cover `before` rows.
  void (*moments)(const void* x, std::int64_t rows, std::int64_t channels, std::int64_t before, double* mean,
                  double* squares);
  // Adds the sums of dy and of dy * (x - mean).
  void (*gradient_sums)(const void* x, const void* dy, const BatchNormForward& forward, std::int64_t rows,
                        std::int64_t channels, double* sum, double* product);
  // y = (x - mean) * scale + shift, then relu.
  void (*apply)(const void* x, void* y, std::int64_t rows, std::int64_t channels, const void* mean, const void* scale,
                const void* shift, bool relu);
  // dx = dy * scale + (x - mean) * slope + shift.
  void (*gradient)(const void* x, const void* dy, const BatchNormForward& forward, void* dx, std::int64_t rows,
                   std::int64_t channels, const void* scale, const void* slope, const void* shift);
};

struct BatchNormTable {
  BatchNormLoops f32, f64;
  const BatchNormLoops& of(DType dtype) const noexcept { return dtype == plimsoll::f32 ? f32 : f64; }
};

PLIMSOLL_LOOPS(BatchNormTable, batch_norm_loops)

}  // namespace plimsoll::internal
