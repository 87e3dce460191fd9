// ConvolutionLoops: the innermost products of convolutions and their gradients.
//
// Offsets and steps are in elements. A grid is `rows` x `columns` pixels that are visited row by row.
#pragma once

#include <cstdint>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/internal/instruction_sets.h"
#include "plimsoll/kernels/rectifier.h"

namespace plimsoll::internal {

// Pixels in memory: pixel (u, v) is at data + u * row_step + v * column_step.
template <class Void>
struct PixelGrid {
  Void* data;
  std::int64_t row_step, column_step;
};

// Adjacent elements of a pixel's neighbourhood.
struct GatherRun {
  std::int64_t offset, length;
};

// y = finish(sum over all runs' elements p of x[p] * filter[p]), for up to two vectors of columns at once.
struct Gather {
  PixelGrid<const void> x;
  PixelGrid<void> y;
  std::int64_t rows, columns;
  const GatherRun* runs;
  std::int64_t num_runs;
  const void* filter;  // For each element of the runs a row of panel_columns(n), padded with zeros.
  std::int64_t n;      // Columns to write, at most two vectors.
  const void* bias;    // n elements, or null.
  Rectifier rectifier;
  const void* next_filter;  // Of the next call, or null: fetched into the second cache meanwhile.
};

// dfilter[k] (= or +=) sum over pixels of x[pixel + offsets[k]] * dy[pixel], for `count` k and up to two vectors of
// columns. Requires that panel_columns(n) elements of each pixel of dy can be read.
struct GatherFilter {
  PixelGrid<const void> x, dy;
  std::int64_t rows, columns;
  const std::int64_t* offsets;
  std::int64_t count;
  void* dfilter;
  std::int64_t stride;  // Between rows of dfilter.
  std::int64_t n;
  bool accumulate;
};

// One channel at a time, for a row of pixels: y[c] = finish(sum over taps of x[tap + c] * filter[tap][c]).
struct Depthwise {
  const void* x;  // At the first tap of the first pixel.
  void* y;
  std::int64_t pixels, x_step, y_step;
  std::int64_t tap_rows, tap_columns, tap_row_step, tap_column_step;  // Taps, and elements of x between them.
  const void* filter;                                                 // `channels` for each tap,
  std::int64_t filter_row_step;                                       // rows of taps so many elements apart.
  std::int64_t channels;
  const void* bias;
  Rectifier rectifier;
};

// dfilter[tap][c] (= or +=) sum over pixels of x[offsets[tap] + c] * dy[c].
struct DepthwiseFilter {
  PixelGrid<const void> x, dy;
  std::int64_t rows, columns;
  const std::int64_t* offsets;
  std::int64_t taps;
  void* dfilter;
  std::int64_t channels;
  bool accumulate;
};

// Transforms of 3x3 convolutions by 2x2 outputs: see convolution_winograd_table.h. The 16 numbers of a patch are
// `plane` elements apart. Channels are a multiple of the vectors' width.
struct WinogradLoops {
  void (*input)(const void* const* pixels, std::int64_t channels, void* to, std::int64_t plane);  // 16 pixels.
  void (*output)(const void* from, std::int64_t plane, std::int64_t channels, const void* bias,
                 const Rectifier& rectifier, void* const* pixels);                                // 4 pixels, or null.
  void (*slope)(const void* const* pixels, std::int64_t channels, void* to, std::int64_t plane);  // 4 pixels of dy.
  void (*filter)(const void* from, std::int64_t tap, std::int64_t k, std::int64_t deep, std::int64_t along,
                 std::int64_t n, void* to, std::int64_t plane);
  void (*taps)(const void* from, std::int64_t plane, std::int64_t n, void* to, std::int64_t tap);
};

struct ConvolutionLoops {
  std::int64_t width;  // Elements of a vector.
  void (*gather)(const Gather& gather);
  void (*gather_filter)(const GatherFilter& gather);
  void (*depthwise)(const Depthwise& depthwise);
  void (*depthwise_filter)(const DepthwiseFilter& depthwise);
  // to[p][j] = x[p * deep + j * along] for j < n, 0 for n <= j < panel_columns(n).
  void (*pack)(const void* x, std::int64_t k, std::int64_t deep, std::int64_t along, std::int64_t n, void* to);
  void (*add)(const void* x, void* y, std::int64_t n);  // y += x
  WinogradLoops winograd;

  // Columns to compute when n are left: one vector or two.
  std::int64_t panel_columns(std::int64_t n) const noexcept { return n > width ? 2 * width : width; }
  std::int64_t padded_columns(std::int64_t n) const noexcept { return round_up(n, width); }
};

struct ConvolutionTable {
  ConvolutionLoops f32, f64;
  const ConvolutionLoops& of(DType dtype) const noexcept { return dtype == plimsoll::f32 ? f32 : f64; }
};

PLIMSOLL_LOOPS(ConvolutionTable, convolution_loops)

}  // namespace plimsoll::internal
