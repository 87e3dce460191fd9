// One axis of a tensor at other places: nearest elements, or sums of neighbours by linear or cubic weights; and the
// adjoint, which spreads a gradient back over the neighbours.
//
//   resample({.from = 4, .to = 8, .scale = 2, .mode = ResampleMode::linear}, x, 1, y, scratch);    // x [2, 4, 3]
//   resample_adjoint(rule, dy, 1, dx, scratch);
//
// Rules are those of ONNX's Resize, for one axis; several axes are resampled one after the other. Weights are computed
// in scratch, so nothing but the rule is kept. Nearest elements are copied, of any dtype; others are of f32 or f64.
// Requires views that do not overlap. Thread safety: any thread, with its own scratch. No allocation, never throws;
// results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class ResampleMode : unsigned char { nearest, linear, cubic };

// Where a place of the result is on the axis as it was.
enum class ResamplePlace : unsigned char {
  half_pixel,
  pytorch_half_pixel,
  half_pixel_symmetric,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};

enum class ResampleRound : unsigned char { prefer_floor, prefer_ceil, floor, ceil };

struct ResampleRule {
  std::int64_t from = 0, to = 0;  // Sizes of the axis.
  double scale = 1;               // to / from, but for rounding.
  ResampleMode mode = ResampleMode::nearest;
  ResamplePlace place = ResamplePlace::half_pixel;
  ResampleRound round = ResampleRound::prefer_floor;
  bool excludes_outside = false;  // Neighbours beyond the edge count nothing, instead of as the edge.
  bool antialias = false;         // When it shrinks, sums go over all elements that it leaves out.
  double cubic = -0.75;
  double begin = 0, end = 1, outside = 0;  // Of tf_crop_and_resize: the part, and the value beyond the edges.
  bool operator==(const ResampleRule&) const = default;
};

// Aligned to 64 bytes.
PLIMSOLL_API std::size_t resample_scratch_bytes(const ResampleRule& rule, DType dtype) noexcept;

PLIMSOLL_API void resample(const ResampleRule& rule, const ConstTensorView& x, std::size_t axis, const TensorView& y,
                           std::span<std::byte> scratch) noexcept;
// Of floats, also of nearest elements. What lies outside has no gradient.
PLIMSOLL_API void resample_adjoint(const ResampleRule& rule, const ConstTensorView& dy, std::size_t axis,
                                   const TensorView& dx, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
