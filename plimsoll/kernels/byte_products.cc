#include "plimsoll/kernels/byte_products.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/byte_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 1 << 19;  // Products of a chunk.

template <class W>
const ByteLoopsOf<W>& byte_loops_of() noexcept {
  if constexpr (std::is_signed_v<W>)
    return byte_loops().i8;
  else
    return byte_loops().u8;
}

template <class X, class W>
struct ByteConvolution {
  const ByteWindow& window;
  const ByteOperands& in;
  const TensorView& y;
  const Shape &xs = in.x.shape(), &ws = in.filter.shape(), &ys = y.shape();
  const X* x = in.x.data<X>();
  const W* w = in.filter.data<W>();
  const std::int32_t x_zero = in.x_zero.data<std::int32_t>()[0];
  const std::int64_t channels = xs[4], out = ys[4], deep = ws[3], wide = out / window.groups;
  const std::int64_t positions = static_cast<std::int64_t>(y.size()) / out;

  // Where the window of an output position lies: its image, and its first place on each axis.
  struct Place {
    const X* image;
    std::int64_t first[3];
  };
  Place place_of(std::int64_t position) const noexcept {
    Place place;
    for (std::size_t axis = 3; axis-- > 0;) {
      place.first[axis] = position % ys[axis + 1] * window.stride[axis] - window.before[axis];
      position /= ys[axis + 1];
    }
    place.image = x + position * xs[1] * xs[2] * xs[3] * channels;
    return place;
  }
  // The channels under a tap; nullptr in the padding.
  const X* under(const Place& place, const std::int64_t (&tap)[3]) const noexcept {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t here = place.first[axis] + tap[axis] * window.dilation[axis];
      if (here < 0 || here >= xs[axis + 1]) return nullptr;
      at = at * xs[axis + 1] + here;
    }
    return place.image + at * channels;
  }

  template <class F>
  void each_tap(F use) const noexcept {
    std::int64_t tap[3], number = 0;
    for (tap[0] = 0; tap[0] < ws[0]; ++tap[0])
      for (tap[1] = 0; tap[1] < ws[1]; ++tap[1])
        for (tap[2] = 0; tap[2] < ws[2]; ++tap[2]) use(tap, number++);
  }

  // A tile: up to kByteRows positions, up to kByteColumns channels out of one group.
  struct Tile {
    std::int32_t sums[kByteRows * kByteColumns] = {}, totals[kByteRows] = {};
    std::int16_t a[kByteRows * kByteDepth];
  };
  void multiply(Tile& tile, const Place* places, std::int64_t rows, std::int64_t group, std::int64_t column,
                std::int64_t columns) const noexcept {
    std::fill_n(tile.a, kByteRows * kByteDepth, std::int16_t{0});
    each_tap([&](const std::int64_t(&tap)[3], std::int64_t number) {
      for (std::int64_t k = 0; k < deep; k += kByteDepth) {
        const std::int64_t depth = std::min(kByteDepth, deep - k);
        for (std::int64_t r = 0; r < rows; ++r) {
          const X* from = under(places[r], tap);
          std::int16_t* to = tile.a + r * kByteDepth;
          std::int32_t total = 0;
          for (std::int64_t i = 0; i < depth; ++i) {
            to[i] = from ? static_cast<std::int16_t>(from[group * deep + k + i] - x_zero) : std::int16_t{0};
            total += to[i];
          }
          tile.totals[r] += total;
        }
        byte_loops_of<W>().multiply(tile.a, depth, w + (number * deep + k) * out + column, out, columns, tile.sums);
      }
    });
  }

  // Each channel by itself: no product of matrices to make of it.
  void multiply_each(Tile& tile, const Place* places, std::int64_t rows, std::int64_t column,
                     std::int64_t columns) const noexcept {
    const std::int32_t *zeros = in.w_zero.data<std::int32_t>(), one = in.w_zero.size() > 1 ? 1 : 0;
    each_tap([&](const std::int64_t(&tap)[3], std::int64_t number) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const X* from = under(places[r], tap);
        if (!from) continue;
        std::int32_t* sums = tile.sums + r * kByteColumns;
        for (std::int64_t j = 0; j < columns; ++j)
          sums[j] += (from[column + j] - x_zero) * (w[number * out + column + j] - zeros[(column + j) * one]);
      }
    });
  }

  template <class Y>
  void quantize(const std::int32_t* sums, std::int64_t column, std::int64_t columns, Y* to) const noexcept {
    const float* w_scale = in.w_scale.data<float>();
    const std::int64_t step = in.w_scale.size() > 1 ? 1 : 0;
    const double x_scale = double(in.x_scale.data<float>()[0]), y_scale = double(in.y_scale.data<float>()[0]);
    const auto y_zero = double(in.y_zero.data<std::int32_t>()[0]);
    const std::int32_t* bias = in.bias.base() ? in.bias.data<std::int32_t>() : nullptr;
    constexpr double kLow = std::numeric_limits<Y>::min(), kHigh = std::numeric_limits<Y>::max();
    for (std::int64_t j = 0; j < columns; ++j) {
      const double sum = double(sums[j]) + (bias ? double(bias[column + j]) : 0.0);
      const double value = std::nearbyint(sum * (double(w_scale[(column + j) * step]) * x_scale) / y_scale) + y_zero;
      to[j] = static_cast<Y>(value >= kLow ? (value <= kHigh ? value : kHigh) : kLow);  // NaN: the lowest.
    }
  }

  void run_tile(std::int64_t begin, std::int64_t rows, std::int64_t group, std::int64_t column,
                std::int64_t columns) const noexcept {
    Tile tile;
    Place places[kByteRows];
    for (std::int64_t r = 0; r < rows; ++r) places[r] = place_of(begin + r);
    if (deep == 1 && wide == 1) {
      multiply_each(tile, places, rows, column, columns);
    } else {
      multiply(tile, places, rows, group, column, columns);
      const std::int32_t *zeros = in.w_zero.data<std::int32_t>(), one = in.w_zero.size() > 1 ? 1 : 0;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < columns; ++j)
          tile.sums[r * kByteColumns + j] -= zeros[(column + j) * one] * tile.totals[r];
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int32_t* sums = tile.sums + r * kByteColumns;
      const std::int64_t at = (begin + r) * out + column;
      if (y.dtype() == i32)
        std::copy_n(sums, columns, y.data<std::int32_t>() + at);
      else if (y.dtype() == i8)
        quantize(sums, column, columns, y.data<std::int8_t>() + at);
      else
        quantize(sums, column, columns, y.data<std::uint8_t>() + at);
    }
  }

  void run() const noexcept {
    const bool each = deep == 1 && wide == 1;
    const std::int64_t blocks = divide_up(positions, kByteRows), taps = ws[0] * ws[1] * ws[2];
    const std::int64_t work = std::max<std::int64_t>(1, kByteRows * taps * deep * out);
    parallel_for(blocks, std::max<std::int64_t>(1, kGrain / work), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t first = block * kByteRows, rows = std::min(kByteRows, positions - first);
        for (std::int64_t group = 0; group < (each ? 1 : window.groups); ++group) {
          const std::int64_t last = each ? out : (group + 1) * wide;
          for (std::int64_t column = group * wide; column < last; column += kByteColumns)
            run_tile(first, rows, group, column, std::min(kByteColumns, last - column));
        }
      }
    });
  }
};

}  // namespace

void byte_convolution(const ByteWindow& window, const ByteOperands& in, const TensorView& y) noexcept {
  if (y.size() == 0) return;
  const bool x_signed = in.x.dtype() == i8, w_signed = in.filter.dtype() == i8;
  if (x_signed && w_signed)
    ByteConvolution<std::int8_t, std::int8_t>{window, in, y}.run();
  else if (x_signed)
    ByteConvolution<std::int8_t, std::uint8_t>{window, in, y}.run();
  else if (w_signed)
    ByteConvolution<std::uint8_t, std::int8_t>{window, in, y}.run();
  else
    ByteConvolution<std::uint8_t, std::uint8_t>{window, in, y}.run();
}

}  // namespace plimsoll::internal
