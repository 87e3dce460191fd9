// PoolingLoops: pooling of a few windows side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/internal/instruction_sets.h"

namespace plimsoll::internal {

// Windows 0 ... outputs - 1 of a row. Steps are in elements; channels of one pixel are `pitch` from the next pixel's.
template <class Input, class Output>
struct PoolRow {
  Input* image;     // At the first channel of interest.
  Input* end;       // The end of what may be read (written) in vectors.
  Output* outputs;  // At the same channel of window 0.
  void* codes;      // [windows][channels] of integers of the elements' size: tap of the maximum. Or null.
  std::int64_t rows, columns, pitch, channels, windows;
  std::int64_t taps_down, taps_across, row_dilation, column_dilation;
  std::int64_t top, left, column_stride;  // Window 0's first tap; may be outside the image.
  bool are_apart;                         // No element is in two windows, and those of a window are side by side.
};
using PoolForwardRow = PoolRow<const void, void>;
using PoolBackwardRow = PoolRow<void, const void>;

// Taps inside an axis.
struct TapRange {
  std::int64_t begin, end;
  std::int64_t count() const noexcept { return end > begin ? end - begin : 0; }
};
inline TapRange taps_inside(std::int64_t first, std::int64_t taps, std::int64_t dilation, std::int64_t size) noexcept {
  if (first >= 0 && first + (taps - 1) * dilation < size) return {0, taps};
  const std::int64_t begin = first < 0 ? divide_up(-first, dilation) : 0;
  const std::int64_t reach = size > first ? divide_up(size - first, dilation) : 0;
  return {begin, taps < reach ? taps : reach};
}

// May also write channels beyond the last, if they belong to later windows: rows are processed in order.
struct PoolingLoops {
  void (*max)(const PoolForwardRow& row);
  void (*take)(const PoolForwardRow& row);  // Reads codes.
  void (*average)(const PoolForwardRow& row);
  void (*max_gradient)(const PoolBackwardRow& row);  // Adds to the image, which was cleared; rows in order.
  void (*average_gradient)(const PoolBackwardRow& row);
  // Codes as they are kept: see pooling_codes.h. Whole groups of 8 are read and written.
  void (*pack_codes)(const void* codes, std::int64_t n, int bits, std::byte* to);
  void (*unpack_codes)(const std::byte* from, std::int64_t n, int bits, void* codes);
};

struct PoolingTable {
  PoolingLoops f32, f64;
  const PoolingLoops& of(DType dtype) const noexcept { return dtype == plimsoll::f32 ? f32 : f64; }
};

PLIMSOLL_LOOPS(PoolingTable, pooling_loops)

}  // namespace plimsoll::internal
