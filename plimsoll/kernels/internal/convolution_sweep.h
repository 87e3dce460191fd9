// Sweep: the geometry of a convolution or of its input's gradient, which are the same: every output pixel of a grid is
// a sum over filter taps of input pixels at fixed distances.
//
//   Sweep forward = forward_sweep(sizes, window);
//   for (phase = 0; phase < phases(sizes, window); ++phase) Sweep back = backward_sweep(sizes, window, phase);
//
// A gradient of strided windows is one sweep per phase: outputs whose rows and columns have the same remainder modulo
// the strides share their taps. Every filter tap belongs to one phase.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/shape.h"
#include "plimsoll/kernels/convolution.h"

namespace plimsoll::internal {

struct ConvolutionSizes {
  std::int64_t batch, rows, columns, channels;                // x.
  std::int64_t filter_rows, filter_columns;                   //
  std::int64_t output_rows, output_columns, output_channels;  // y.
  std::int64_t groups;
  std::int64_t lanes;  // Of Convolution.

  // So many parts at once, of those that there are.
  std::int64_t at_once(std::int64_t parts) const noexcept { return lanes > 0 && lanes < parts ? lanes : parts; }
  std::int64_t group_channels() const noexcept { return channels / groups; }
  std::int64_t group_outputs() const noexcept { return output_channels / groups; }
  std::int64_t taps() const noexcept { return filter_rows * filter_columns; }
  bool is_depthwise() const noexcept { return groups > 1 && groups == channels && groups == output_channels; }
};

// Checks that the shapes agree.
ConvolutionSizes convolution_sizes(const Shape& x, const Shape& filter, const Shape& y,
                                   const Convolution& convolution) noexcept;

// Output i, at start + i * step of its axis, is the sum of inputs at first(i) + t * tap_step times filter taps tap + t
// * filter_step, for t < taps.
struct SweepAxis {
  std::int64_t outputs, start, step;
  std::int64_t inputs, input_step, offset, tap_step;
  std::int64_t taps, tap, filter_step;

  std::int64_t first(std::int64_t output) const noexcept { return output * input_step + offset; }
  // Inputs from the first to the last that n adjacent outputs need.
  std::int64_t span(std::int64_t n) const noexcept {
    return taps == 0 || n == 0 ? 0 : (n - 1) * input_step + (taps - 1) * tap_step + 1;
  }
  bool is_inside() const noexcept { return span(outputs) == 0 || (offset >= 0 && offset + span(outputs) <= inputs); }
};

struct Sweep {
  SweepAxis down, across;
  std::int64_t images, channels, output_columns, output_channels;  // Whole images.

  bool is_inside() const noexcept { return down.is_inside() && across.is_inside(); }  // No tap meets padding.
};

Sweep forward_sweep(const ConvolutionSizes& sizes, const Window& window) noexcept;
std::int64_t phases(const ConvolutionSizes& sizes, const Window& window) noexcept;
Sweep backward_sweep(const ConvolutionSizes& sizes, const Window& window, std::int64_t phase) noexcept;

// How the grid of outputs of each image is split into blocks, by shape only.
struct SweepCut {
  std::int64_t rows, columns, row_blocks, column_blocks;  // Per block; per image.
  std::int64_t blocks() const noexcept { return row_blocks * column_blocks; }
};

// Blocks of up to `pixels` outputs whose inputs and `output_elements` per output stay below `limit` elements where
// possible, and at least `wanted` of them over all images unless they had fewer than `least` outputs.
SweepCut cut_sweep(const Sweep& sweep, std::int64_t output_elements, std::int64_t limit, std::int64_t pixels,
                   std::int64_t wanted, std::int64_t least) noexcept;

struct SweepBlock {
  std::int64_t image, row, column, rows, columns;  // Outputs [row, row + rows) x [column, column + columns).
};
SweepBlock block_of(const Sweep& sweep, const SweepCut& cut, std::int64_t index) noexcept;

// The inputs of a block: in the image itself or in a copy with padding.
struct BlockInput {
  const std::byte* data;          // At the first tap of the block's first output.
  std::int64_t row_pitch, pitch;  // Elements between rows, and between pixels.
};

// The layout of inputs: when `copied`, with `pitch` elements from pixel to pixel, else as in the image.
struct InputLayout {
  bool copied;
  std::int64_t columns, pitch;  // Pixels from row to row; elements.
  std::int64_t copy_elements;   // For the largest block.

  std::int64_t row_pitch() const noexcept { return columns * pitch; }
};

// `pitch` >= channels is for copies, which are made when taps meet padding, or `always`.
InputLayout input_layout(const Sweep& sweep, const SweepCut& cut, std::int64_t pitch, bool always) noexcept;

// `copy` is memory for layout.copy_elements.
BlockInput block_input(const Sweep& sweep, const InputLayout& layout, const SweepBlock& block, const std::byte* images,
                       std::size_t element_bytes, std::byte* copy) noexcept;

}  // namespace plimsoll::internal
