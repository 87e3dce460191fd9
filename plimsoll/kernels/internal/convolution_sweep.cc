#include "plimsoll/kernels/internal/convolution_sweep.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

SweepAxis forward_axis(std::int64_t inputs, std::int64_t outputs, std::int64_t taps, std::int64_t stride,
                       std::int64_t dilation, std::int64_t before) noexcept {
  return {outputs, 0, 1, inputs, stride, -before, dilation, taps, 0, 1};
}

// Outputs are x's elements phase, phase + stride, ...; inputs are y's.
SweepAxis backward_axis(std::int64_t inputs, std::int64_t outputs, std::int64_t taps, std::int64_t stride,
                        std::int64_t dilation, std::int64_t before, std::int64_t phase) noexcept {
  SweepAxis axis = {};
  axis.outputs = phase < outputs ? (outputs - phase - 1) / stride + 1 : 0;
  axis.start = phase;
  axis.step = stride;
  axis.inputs = inputs;
  axis.input_step = 1;
  const std::int64_t common = std::gcd(stride, dilation), distance = stride / common;
  std::int64_t first = 0;  // Tap k reaches y at (phase + before - k * dilation) / stride: of those that divide.
  while (first < std::min(taps, distance) && (phase + before - first * dilation) % stride != 0) ++first;
  if (first >= std::min(taps, distance)) return axis;
  axis.taps = (taps - 1 - first) / distance + 1;
  axis.tap = first + (axis.taps - 1) * distance;  // The last tap reaches the first input.
  axis.filter_step = -distance;
  axis.offset = (phase + before - axis.tap * dilation) / stride;
  axis.tap_step = dilation / common;
  return axis;
}

void zero(std::byte* to, std::int64_t bytes) noexcept {
  if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
}

}  // namespace

ConvolutionSizes convolution_sizes(const Shape& x, const Shape& filter, const Shape& y,
                                   const Convolution& convolution) noexcept {
  PLIMSOLL_CHECK(x.rank() == 4 && filter.rank() == 4 && y.rank() == 4 && convolution.groups > 0);
  const ConvolutionSizes sizes = {
      x[0], x[1], x[2], x[3], filter[0], filter[1], y[1], y[2], y[3], convolution.groups, convolution.lanes};
  const Window& window = convolution.window;
  PLIMSOLL_CHECK(y[0] == x[0] && x[3] % sizes.groups == 0 && y[3] % sizes.groups == 0);
  PLIMSOLL_CHECK(filter[2] * filter[3] == sizes.group_channels() * sizes.output_channels);
  PLIMSOLL_CHECK(filter[0] > 0 && filter[1] > 0 && y[1] == window.positions_down(x[1], filter[0]) &&
                 y[2] == window.positions_across(x[2], filter[1]));
  return sizes;
}

Sweep forward_sweep(const ConvolutionSizes& s, const Window& w) noexcept {
  return {forward_axis(s.rows, s.output_rows, s.filter_rows, w.row_stride, w.row_dilation, w.top),
          forward_axis(s.columns, s.output_columns, s.filter_columns, w.column_stride, w.column_dilation, w.left),
          s.batch,
          s.channels,
          s.output_columns,
          s.output_channels};
}

namespace {

// Those after the image's last row, or column, have no outputs.
std::int64_t row_phases(const ConvolutionSizes& s, const Window& w) noexcept { return std::min(w.row_stride, s.rows); }
std::int64_t column_phases(const ConvolutionSizes& s, const Window& w) noexcept {
  return std::min(w.column_stride, s.columns);
}

}  // namespace

std::int64_t phases(const ConvolutionSizes& sizes, const Window& window) noexcept {
  return row_phases(sizes, window) * column_phases(sizes, window);
}

Sweep backward_sweep(const ConvolutionSizes& s, const Window& w, std::int64_t phase) noexcept {
  Sweep sweep = {backward_axis(s.output_rows, s.rows, s.filter_rows, w.row_stride, w.row_dilation, w.top,
                               phase / column_phases(s, w)),
                 backward_axis(s.output_columns, s.columns, s.filter_columns, w.column_stride, w.column_dilation,
                               w.left, phase % column_phases(s, w)),
                 s.batch,
                 s.output_channels,
                 s.columns,
                 s.channels};
  if (sweep.down.taps == 0 || sweep.across.taps == 0) sweep.down.taps = sweep.across.taps = 0;
  return sweep;
}

SweepCut cut_sweep(const Sweep& sweep, std::int64_t output_elements, std::int64_t limit, std::int64_t pixels,
                   std::int64_t wanted, std::int64_t least) noexcept {
  std::int64_t rows = std::max<std::int64_t>(sweep.down.outputs, 1);
  std::int64_t columns = std::max<std::int64_t>(sweep.across.outputs, 1);
  const auto blocks = [&](std::int64_t all, std::int64_t one) { return divide_up(all, one); };
  const auto is_coarse = [&] {
    const std::int64_t elements =
        sweep.down.span(rows) * sweep.across.span(columns) * sweep.channels + rows * columns * output_elements;
    if (elements > limit || rows * columns > pixels) return true;
    return sweep.images * blocks(sweep.down.outputs, rows) * blocks(sweep.across.outputs, columns) < wanted &&
           rows * columns >= 2 * least;
  };
  while (is_coarse()) {
    if (rows > 1)
      rows = divide_up(rows, 2);
    else if (columns > 24)
      columns = divide_up(columns, 2);
    else
      break;
  }
  return {rows, columns, blocks(sweep.down.outputs, rows), blocks(sweep.across.outputs, columns)};
}

SweepBlock block_of(const Sweep& sweep, const SweepCut& cut, std::int64_t index) noexcept {
  SweepBlock block;
  block.image = index / cut.blocks();
  block.row = index % cut.blocks() / cut.column_blocks * cut.rows;
  block.column = index % cut.column_blocks * cut.columns;
  block.rows = std::min(cut.rows, sweep.down.outputs - block.row);
  block.columns = std::min(cut.columns, sweep.across.outputs - block.column);
  return block;
}

InputLayout input_layout(const Sweep& sweep, const SweepCut& cut, std::int64_t pitch, bool always) noexcept {
  if (sweep.is_inside() && !always) return {false, sweep.across.inputs, sweep.channels, 0};
  const std::int64_t columns = sweep.across.span(cut.columns);
  return {true, columns, pitch, sweep.down.span(cut.rows) * columns * pitch};
}

BlockInput block_input(const Sweep& sweep, const InputLayout& layout, const SweepBlock& block, const std::byte* images,
                       std::size_t element_bytes, std::byte* copy) noexcept {
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  const std::int64_t pixel = sweep.channels * bytes;  // In the image.
  const std::int64_t inputs_down = sweep.down.inputs, inputs_across = sweep.across.inputs;
  const std::byte* image = images + block.image * inputs_down * inputs_across * pixel;
  const std::int64_t top = sweep.down.first(block.row), left = sweep.across.first(block.column);
  if (sweep.down.taps == 0) return {images, 0, 0};
  if (!layout.copied) return {image + (top * inputs_across + left) * pixel, layout.row_pitch(), layout.pitch};
  const BlockInput copied = {copy, layout.row_pitch(), layout.pitch};
  const std::int64_t width = sweep.across.span(block.columns), step = layout.pitch * bytes;
  const std::int64_t before = std::clamp<std::int64_t>(-left, 0, width);
  const std::int64_t after = std::clamp<std::int64_t>(left + width - inputs_across, 0, width - before);
  const std::int64_t middle = width - before - after;
  for (std::int64_t r = 0, end = sweep.down.span(block.rows); r < end; ++r, copy += layout.row_pitch() * bytes) {
    if (top + r < 0 || top + r >= inputs_down || middle <= 0) {
      zero(copy, width * step);
      continue;
    }
    zero(copy, before * step);
    zero(copy + (before + middle) * step, after * step);
    const std::byte* from = image + ((top + r) * inputs_across + left + before) * pixel;
    if (step == pixel) {
      std::memcpy(copy + before * step, from, static_cast<std::size_t>(middle * pixel));
      continue;
    }
    for (std::int64_t i = 0; i < middle; ++i)
      std::memcpy(copy + (before + i) * step, from + i * pixel, static_cast<std::size_t>(pixel));
  }
  return copied;
}

}  // namespace plimsoll::internal
