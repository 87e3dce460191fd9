#include "plimsoll/kernels/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostAxes = 3;
constexpr std::int64_t kPointsPerChunk = 64;

// x within [low, high], mirrored at the borders as often as needed; `slope` changes its sign with each mirroring.
template <class T>
T mirrored(T x, T low, T high, T& slope) noexcept {
  const T range = high - low;
  if (!(range > 0)) return slope = 0, low;
  const bool below = x < low;
  if (!below && x <= high) return x;
  const T beyond = below ? low - x : x - high, times = std::floor(beyond / range), rest = beyond - times * range;
  const bool even = std::fmod(times, T(2)) == 0;
  slope = even ? -slope : slope;
  return even == below ? low + rest : high - rest;
}

// The neighbours of one coordinate along an axis, what each counts and how that changes with the coordinate.
template <class T>
struct Taps {
  int count = 0;
  std::int64_t at[4];
  T weight[4], slope[4];

  void add(std::int64_t place, T the_weight, T the_slope) noexcept {
    at[count] = place, weight[count] = the_weight, slope[count] = the_slope;
    ++count;
  }

  Taps() noexcept { add(0, T(1), T(0)); }  // Of an axis that is not there.
  Taps(const GridRule& rule, std::int64_t size, T coordinate) noexcept {
    const T length = static_cast<T>(size), low = rule.align_corners ? T(0) : T(-0.5);
    const T high = rule.align_corners ? length - 1 : length - T(0.5);
    T slope_of_x = rule.align_corners ? (length - 1) / 2 : length / 2;
    T x = rule.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
    if (!(std::fabs(x) < T(1e9))) return;
    if (rule.mode == ResampleMode::nearest) x = std::nearbyint(x);
    if (x < low || x > high) {
      if (rule.padding == GridPadding::border) x = std::clamp(x, T(0), length - 1), slope_of_x = 0;
      if (rule.padding == GridPadding::reflection) x = mirrored(x, low, high, slope_of_x);
    }
    const T floor = std::floor(x), t = x - floor;
    const auto first = static_cast<std::int64_t>(floor);
    const auto place = [&](std::int64_t i) -> std::int64_t {
      if (i >= 0 && i < size) return i;
      if (rule.padding == GridPadding::zeros) return -1;
      T unused = 1;
      const T inside =
          rule.padding == GridPadding::border ? static_cast<T>(i) : mirrored(static_cast<T>(i), low, high, unused);
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(inside), 0, size - 1);
    };
    const auto put = [&](std::int64_t i, T value, T change) {
      if (const std::int64_t found = place(i); found >= 0) add(found, value, change * slope_of_x);
    };
    if (rule.mode == ResampleMode::nearest) {
      put(static_cast<std::int64_t>(x), T(1), T(0));
    } else if (rule.mode == ResampleMode::linear) {
      put(first, 1 - t, T(-1));
      put(first + 1, t, T(1));
    } else {
      constexpr T kA = T(-0.75);
      const auto near = [](T d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
      const auto far = [](T d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
      const auto near_slope = [](T d) { return (3 * (kA + 2) * d - 2 * (kA + 3)) * d; };
      const auto far_slope = [](T d) { return (3 * kA * d - 10 * kA) * d + 8 * kA; };
      put(first - 1, far(1 + t), far_slope(1 + t));
      put(first, near(t), near_slope(t));
      put(first + 1, near(1 - t), -near_slope(1 - t));
      put(first + 2, far(2 - t), -far_slope(2 - t));
    }
  }
};

// x as [batch, 3 axes of places, channels], and how many points each image has.
struct Extent {
  std::int64_t batch, sizes[kMostAxes] = {1, 1, 1}, channels, points = 1;
  std::size_t axes;
  Extent(const Shape& x, const Shape& grid) noexcept : batch(x[0]), channels(x.back()), axes(x.rank() - 2) {
    for (std::size_t axis = 0; axis < axes; ++axis) sizes[kMostAxes - axes + axis] = x[axis + 1];
    for (std::size_t axis = 1; axis + 1 < grid.rank(); ++axis) points *= grid[axis];
  }
  std::int64_t image() const noexcept { return sizes[0] * sizes[1] * sizes[2] * channels; }
};

// All neighbours of a point: `use(offset in the image, numbers of the taps)`.
template <class T>
struct Point {
  Taps<T> taps[kMostAxes];
  Point(const GridRule& rule, const Extent& extent, const T* coordinates) noexcept {
    const std::size_t skipped = kMostAxes - extent.axes;
    for (std::size_t axis = 0; axis < extent.axes; ++axis)  // The last axis comes first.
      taps[skipped + axis] = Taps<T>(rule, extent.sizes[skipped + axis], coordinates[extent.axes - 1 - axis]);
  }
  template <class F>
  void each(const Extent& extent, F use) const noexcept {
    for (int i = 0; i < taps[0].count; ++i)
      for (int j = 0; j < taps[1].count; ++j)
        for (int k = 0; k < taps[2].count; ++k)
          use(((taps[0].at[i] * extent.sizes[1] + taps[1].at[j]) * extent.sizes[2] + taps[2].at[k]) * extent.channels,
              i, j, k);
  }
  T weight(int i, int j, int k) const noexcept { return taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k]; }
  T slope(std::size_t axis, int i, int j, int k) const noexcept {
    return (axis == 0 ? taps[0].slope[i] : taps[0].weight[i]) * (axis == 1 ? taps[1].slope[j] : taps[1].weight[j]) *
           (axis == 2 ? taps[2].slope[k] : taps[2].weight[k]);
  }
};

template <class T>
void sample(const GridRule& rule, const Extent& extent, const T* x, const T* grid, T* y) noexcept {
  parallel_for(extent.batch * extent.points, kPointsPerChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const T* image = x + at / extent.points * extent.image();
      T* out = y + at * extent.channels;
      std::fill_n(out, extent.channels, T(0));
      const Point<T> point(rule, extent, grid + at * static_cast<std::int64_t>(extent.axes));
      point.each(extent, [&](std::int64_t offset, int i, int j, int k) {
        const T weight = point.weight(i, j, k);
        for (std::int64_t c = 0; c < extent.channels; ++c) out[c] += weight * image[offset + c];
      });
    }
  });
}

// Each image by one thread, so that sums are always in the same order.
template <class T>
void gradient(const GridRule& rule, const Extent& extent, const T* x, const T* grid, const T* dy, T* dx,
              T* dgrid) noexcept {
  const auto axes = static_cast<std::int64_t>(extent.axes);
  parallel_for(extent.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const T* image = x + b * extent.image();
      T* sums = dx + b * extent.image();
      std::fill_n(sums, extent.image(), T(0));
      for (std::int64_t at = b * extent.points; at < (b + 1) * extent.points; ++at) {
        const T* in = dy + at * extent.channels;
        T slopes[kMostAxes] = {};
        const Point<T> point(rule, extent, grid + at * axes);
        point.each(extent, [&](std::int64_t offset, int i, int j, int k) {
          const T weight = point.weight(i, j, k);
          T product = 0;
          for (std::int64_t c = 0; c < extent.channels; ++c) {
            sums[offset + c] += weight * in[c];
            product += in[c] * image[offset + c];
          }
          for (std::size_t axis = 0; axis < kMostAxes; ++axis) slopes[axis] += product * point.slope(axis, i, j, k);
        });
        for (std::int64_t axis = 0; axis < axes; ++axis) dgrid[at * axes + axis] = slopes[kMostAxes - 1 - axis];
      }
    }
  });
}

}  // namespace

void grid_sample(const GridRule& rule, const ConstTensorView& x, const ConstTensorView& grid,
                 const TensorView& y) noexcept {
  const Extent extent(x.shape(), grid.shape());
  if (x.dtype() == f32)
    sample(rule, extent, x.data<float>(), grid.data<float>(), y.data<float>());
  else
    sample(rule, extent, x.data<double>(), grid.data<double>(), y.data<double>());
}

void grid_sample_gradient(const GridRule& rule, const ConstTensorView& x, const ConstTensorView& grid,
                          const ConstTensorView& dy, const GridGradients& out) noexcept {
  const Extent extent(x.shape(), grid.shape());
  if (x.dtype() == f32)
    gradient(rule, extent, x.data<float>(), grid.data<float>(), dy.data<float>(), out.x.data<float>(),
             out.grid.data<float>());
  else
    gradient(rule, extent, x.data<double>(), grid.data<double>(), dy.data<double>(), out.x.data<double>(),
             out.grid.data<double>());
}

}  // namespace plimsoll::internal
