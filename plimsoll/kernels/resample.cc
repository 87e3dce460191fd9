#include "plimsoll/kernels/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // Elements of a chunk.

// The place on the axis as it was, of place `to` of the result.
double resample_place(const ResampleRule& rule, std::int64_t to) noexcept {
  const double at = static_cast<double>(to), from = static_cast<double>(rule.from), size = static_cast<double>(rule.to);
  switch (rule.place) {
    case ResamplePlace::half_pixel:
      return (at + 0.5) / rule.scale - 0.5;
    case ResamplePlace::pytorch_half_pixel:
      return rule.to > 1 ? (at + 0.5) / rule.scale - 0.5 : 0;
    case ResamplePlace::half_pixel_symmetric: {
      const double adjusted = size / (rule.scale * from);
      return from / 2 * (1 - adjusted) + (at + 0.5) / rule.scale - 0.5;
    }
    case ResamplePlace::align_corners:
      return rule.to > 1 ? at * (from - 1) / (rule.scale * from - 1) : 0;
    case ResamplePlace::asymmetric:
      return at / rule.scale;
    case ResamplePlace::tf_half_pixel_for_nn:
      return (at + 0.5) / rule.scale;
    case ResamplePlace::tf_crop_and_resize:
      return rule.to > 1 ? rule.begin * (from - 1) + at * (rule.end - rule.begin) * (from - 1) / (size - 1)
                         : 0.5 * (rule.begin + rule.end) * (from - 1);
  }
  return 0;
}

double shrinking(const ResampleRule& rule) noexcept { return rule.antialias ? std::min(rule.scale, 1.0) : 1.0; }

// Neighbours on either side that have a weight.
std::int64_t half_of(const ResampleRule& rule) noexcept {
  const double reach = rule.mode == ResampleMode::linear ? 1 : 2;
  return 1 - static_cast<std::int64_t>(std::floor(-reach / shrinking(rule)) + 1);
}

std::int64_t taps_of(const ResampleRule& rule) noexcept {
  return rule.mode == ResampleMode::nearest ? 1 : 2 * half_of(rule);
}

double weight_of(const ResampleRule& rule, double distance) noexcept {
  const double d = std::fabs(distance), a = rule.cubic;
  if (rule.mode == ResampleMode::linear) return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0;
}

std::int64_t nearest_place(const ResampleRule& rule, double x) noexcept {
  double place = 0;
  switch (rule.round) {
    case ResampleRound::prefer_floor:
      place = std::ceil(x - 0.5);
      break;
    case ResampleRound::prefer_ceil:
      place = std::floor(x + 0.5);
      break;
    case ResampleRound::floor:
      place = std::floor(x);
      break;
    case ResampleRound::ceil:
      place = std::ceil(x);
      break;
  }
  return static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(rule.from - 1)));
}

// For each place of the result, the first of its neighbours and their weights. A neighbour beyond the edge stands for
// the edge. A place that lies outside of the axis has its first neighbour at kOutside.
template <class T>
struct Table {
  static constexpr std::int64_t kOutside = INT64_MIN;
  std::int64_t* first;
  T* weights;
  std::int64_t taps;

  Table(const ResampleRule& rule, std::byte* scratch) noexcept
      : first(reinterpret_cast<std::int64_t*>(scratch)),
        weights(reinterpret_cast<T*>(first + rule.to)),
        taps(taps_of(rule)) {
    for (std::int64_t to = 0; to < rule.to; ++to) set(rule, to);
  }

  void set(const ResampleRule& rule, std::int64_t to) noexcept {
    const double x = resample_place(rule, to);
    T* out = weights + to * taps;
    if (rule.place == ResamplePlace::tf_crop_and_resize && (x < 0 || x > static_cast<double>(rule.from - 1))) {
      first[to] = kOutside;
      std::fill_n(out, taps, T(0));
    } else if (rule.mode == ResampleMode::nearest) {
      first[to] = nearest_place(rule, x);
      out[0] = T(1);
    } else {
      const double shrink = shrinking(rule);
      first[to] = static_cast<std::int64_t>(std::ceil(x)) - half_of(rule);
      const auto part = [&](std::int64_t tap) {
        const std::int64_t at = first[to] + tap;
        if (rule.excludes_outside && (at < 0 || at >= rule.from)) return 0.0;
        return weight_of(rule, (static_cast<double>(at) - x) * shrink);
      };
      double total = rule.excludes_outside || rule.antialias ? 0 : 1;
      for (std::int64_t tap = 0; tap < taps && (rule.excludes_outside || rule.antialias); ++tap) total += part(tap);
      for (std::int64_t tap = 0; tap < taps; ++tap) out[tap] = static_cast<T>(part(tap) / (total == 0 ? 1 : total));
    }
  }
};

struct Split {
  std::int64_t outer = 1, inner = 1;
  Split(const Shape& shape, std::size_t axis) noexcept {
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

std::int64_t rows_of_grain(std::int64_t inner, std::int64_t taps) noexcept {
  return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, inner * taps));
}

// y[outer, to, :] = sum of weights x[outer, neighbour, :].
template <class T>
void sum_neighbours(const ResampleRule& rule, const Table<T>& table, const T* x, const Split& split, T* y) noexcept {
  const std::int64_t inner = split.inner, last = rule.from - 1;
  parallel_for(split.outer * rule.to, rows_of_grain(inner, table.taps), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t to = row % rule.to, first = table.first[to];
      const T *from = x + row / rule.to * rule.from * inner, *weights = table.weights + to * table.taps;
      T* out = y + row * inner;
      if (first == Table<T>::kOutside) {
        std::fill_n(out, inner, static_cast<T>(rule.outside));
        continue;
      }
      for (std::int64_t tap = 0; tap < table.taps; ++tap) {
        const T* in = from + std::clamp<std::int64_t>(first + tap, 0, last) * inner;
        const T weight = weights[tap];
        if (tap == 0)
          for (std::int64_t i = 0; i < inner; ++i) out[i] = weight * in[i];
        else
          for (std::int64_t i = 0; i < inner; ++i) out[i] += weight * in[i];
      }
    }
  });
}

// The adjoint; chunks are whole outer blocks, so that sums are always in the same order.
template <class T>
void spread(const ResampleRule& rule, const Table<T>& table, const T* dy, const Split& split, T* dx) noexcept {
  const std::int64_t inner = split.inner, last = rule.from - 1;
  const std::int64_t grain = rows_of_grain(inner * rule.to, table.taps);
  parallel_for(split.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      T* out = dx + block * rule.from * inner;
      std::fill_n(out, rule.from * inner, T(0));
      for (std::int64_t to = 0; to < rule.to; ++to) {
        if (table.first[to] == Table<T>::kOutside) continue;
        const T *in = dy + (block * rule.to + to) * inner, *weights = table.weights + to * table.taps;
        for (std::int64_t tap = 0; tap < table.taps; ++tap) {
          T* place = out + std::clamp<std::int64_t>(table.first[to] + tap, 0, last) * inner;
          const T weight = weights[tap];
          for (std::int64_t i = 0; i < inner; ++i) place[i] += weight * in[i];
        }
      }
    }
  });
}

// Bits of the value that stands outside, in the dtype of the tensor.
void outside_element(const ResampleRule& rule, DType dtype, std::byte* out) noexcept {
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    const T value = [&] {
      if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
        return T(static_cast<float>(rule.outside));
      else
        return static_cast<T>(rule.outside);
    }();
    std::memcpy(out, &value, sizeof value);
  });
}

void copy_nearest(const ResampleRule& rule, const Table<double>& table, const ConstTensorView& x, const Split& split,
                  const TensorView& y) noexcept {
  const std::size_t element = size_of(x.dtype()), bytes = static_cast<std::size_t>(split.inner) * element;
  std::byte outside[8];
  outside_element(rule, x.dtype(), outside);
  parallel_for(split.outer * rule.to, rows_of_grain(split.inner, 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = table.first[row % rule.to], block = row / rule.to * rule.from;
      std::byte* out = y.bytes() + static_cast<std::size_t>(row) * bytes;
      if (first == Table<double>::kOutside) {
        for (std::size_t i = 0; i < bytes; i += element) std::memcpy(out + i, outside, element);
      } else if (bytes == 4) {  // Of single elements; a call for each would cost more than it copies.
        std::memcpy(out, x.bytes() + static_cast<std::size_t>(block + first) * 4, 4);
      } else {
        std::memcpy(out, x.bytes() + static_cast<std::size_t>(block + first) * bytes, bytes);
      }
    }
  });
}

}  // namespace

std::size_t resample_scratch_bytes(const ResampleRule& rule, DType) noexcept {
  const auto to = static_cast<std::size_t>(rule.to), taps = static_cast<std::size_t>(taps_of(rule));
  return round_up(to * (sizeof(std::int64_t) + taps * sizeof(double)), 64);
}

void resample(const ResampleRule& rule, const ConstTensorView& x, std::size_t axis, const TensorView& y,
              std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(scratch.size() >= resample_scratch_bytes(rule, x.dtype()));
  const Split split(x.shape(), axis);
  if (y.size() == 0) return;
  if (rule.mode == ResampleMode::nearest)
    copy_nearest(rule, Table<double>(rule, scratch.data()), x, split, y);
  else if (x.dtype() == f32)
    sum_neighbours(rule, Table<float>(rule, scratch.data()), x.data<float>(), split, y.data<float>());
  else
    sum_neighbours(rule, Table<double>(rule, scratch.data()), x.data<double>(), split, y.data<double>());
}

void resample_adjoint(const ResampleRule& rule, const ConstTensorView& dy, std::size_t axis, const TensorView& dx,
                      std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(scratch.size() >= resample_scratch_bytes(rule, dy.dtype()));
  const Split split(dx.shape(), axis);
  if (dx.size() == 0) return;
  if (dy.dtype() == f32)
    spread(rule, Table<float>(rule, scratch.data()), dy.data<float>(), split, dx.data<float>());
  else
    spread(rule, Table<double>(rule, scratch.data()), dy.data<double>(), split, dx.data<double>());
}

}  // namespace plimsoll::internal
