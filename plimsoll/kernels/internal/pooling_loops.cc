// Compiled once per instruction set: see instruction_sets.h.
#include <cstring>
#include <limits>
#include <type_traits>

#include "plimsoll/kernels/internal/pooling_codes.h"
#include "plimsoll/kernels/internal/pooling_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

template <class T>
using PoolCode = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// A vector of channels, or one channel: V is then T, I an integer.
template <class T>
struct PoolVector {
  static constexpr std::int64_t kWidth = kLanesOf<T>;
  using V = Vector<T>;
  using I = Vector<PoolCode<T>>;
  // -1 in the first n lanes.
  static I first_lanes(std::int64_t n) noexcept {
    I lane;
    for (int i = 0; i < kWidth; ++i) lane[i] = i;
    return lane < static_cast<PoolCode<T>>(n < kWidth ? n : kWidth);
  }
};
template <class T>
struct PoolScalar {
  static constexpr std::int64_t kWidth = 1;
  using V = T;
  using I = PoolCode<T>;
  static I first_lanes(std::int64_t) noexcept { return -1; }
};

// The taps of one window that are inside the image.
struct PoolTaps {
  TapRange down, across;
  std::int64_t offset, row_step, column_step, taps_across;  // Offset of tap (0, 0), and steps, in elements.

  template <class Row>
  PoolTaps(const Row& row, TapRange rows, std::int64_t w) noexcept
      : down(rows),
        across(taps_inside(row.left + w * row.column_stride, row.taps_across, row.column_dilation, row.columns)),
        offset((row.top * row.columns + row.left + w * row.column_stride) * row.pitch),
        row_step(row.row_dilation * row.columns * row.pitch),
        column_step(row.column_dilation * row.pitch),
        taps_across(row.taps_across) {}

  std::int64_t count() const noexcept { return down.count() * across.count(); }
  std::int64_t last() const noexcept {  // Offset of the last tap.
    return count() == 0 ? 0 : offset + (down.end - 1) * row_step + (across.end - 1) * column_step;
  }
  // Calls visit(tap, offset) for each, in order.
  template <class F>
  void each(F visit) const noexcept {
    for (std::int64_t i = down.begin; i < down.end; ++i)
      for (std::int64_t j = across.begin; j < across.end; ++j)
        visit(i * taps_across + j, offset + i * row_step + j * column_step);
  }
};

// Each works on kVectors vectors of channels from c on.
template <class Shape, class T, int kVectors>
struct MaxForward {
  static void run(const PoolForwardRow& row, const PoolTaps& taps, std::int64_t w, std::int64_t c) noexcept {
    using V = typename Shape::V;
    using I = typename Shape::I;
    const T* x = static_cast<const T*>(row.image) + c;
    V best[kVectors];
    I code[kVectors] = {};
    // The first tap is compared twice, which changes nothing.
    const std::int64_t first = taps.offset + taps.down.begin * taps.row_step + taps.across.begin * taps.column_step;
    const std::int64_t first_tap = taps.down.begin * taps.taps_across + taps.across.begin;
    for (int i = 0; i < kVectors; ++i) {
      best[i] =
          taps.count() == 0 ? V{} - std::numeric_limits<T>::infinity() : load_as<V>(x + first + i * Shape::kWidth);
      if (taps.count() != 0) code[i] = I{} + static_cast<PoolCode<T>>(first_tap);
    }
    taps.each([&](std::int64_t tap, std::int64_t offset) {
      const I at = I{} + static_cast<PoolCode<T>>(tap);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        const V value = load_as<V>(x + offset + i * Shape::kWidth);
        const auto take = (value > best[i]) | ((value != value) & (best[i] == best[i]));
        best[i] = take ? value : best[i], code[i] = take ? at : code[i];
      }
    });
    for (int i = 0; i < kVectors; ++i)
      store_as(static_cast<T*>(row.outputs) + w * row.pitch + c + i * Shape::kWidth, best[i]);
    if (!row.codes) return;
    for (int i = 0; i < kVectors; ++i)
      store_as(static_cast<PoolCode<T>*>(row.codes) + w * row.channels + c + i * Shape::kWidth, code[i]);
  }
};

// The elements at the places that the codes give.
template <class Shape, class T, int kVectors>
struct TakeForward {
  static void run(const PoolForwardRow& row, const PoolTaps& taps, std::int64_t w, std::int64_t c) noexcept {
    using V = typename Shape::V;
    using I = typename Shape::I;
    const T* x = static_cast<const T*>(row.image) + c;
    V taken[kVectors] = {};
    I code[kVectors];
    for (int i = 0; i < kVectors; ++i)
      code[i] = load_as<I>(static_cast<const PoolCode<T>*>(row.codes) + w * row.channels + c + i * Shape::kWidth);
    taps.each([&](std::int64_t tap, std::int64_t offset) {
      const I at = I{} + static_cast<PoolCode<T>>(tap);
      for (int i = 0; i < kVectors; ++i)
        taken[i] = code[i] == at ? load_as<V>(x + offset + i * Shape::kWidth) : taken[i];
    });
    for (int i = 0; i < kVectors; ++i)
      store_as(static_cast<T*>(row.outputs) + w * row.pitch + c + i * Shape::kWidth, taken[i]);
  }
};

template <class Shape, class T, int kVectors>
struct AverageForward {
  static void run(const PoolForwardRow& row, const PoolTaps& taps, std::int64_t w, std::int64_t c) noexcept {
    using V = typename Shape::V;
    const T* x = static_cast<const T*>(row.image) + c;
    V sum[kVectors] = {};
    taps.each([&](std::int64_t, std::int64_t offset) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sum[i] += load_as<V>(x + offset + i * Shape::kWidth);
    });
    const std::int64_t count = taps.count() == 0 ? 1 : taps.count();
    for (int i = 0; i < kVectors; ++i)
      store_as(static_cast<T*>(row.outputs) + w * row.pitch + c + i * Shape::kWidth, sum[i] / static_cast<T>(count));
  }
};

template <class Shape, class T, int kVectors>
struct MaxBackward {
  static void run(const PoolBackwardRow& row, const PoolTaps& taps, std::int64_t w, std::int64_t c) noexcept {
    using V = typename Shape::V;
    using I = typename Shape::I;
    T* dx = static_cast<T*>(row.image) + c;
    V dy[kVectors];
    I code[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      const std::int64_t channel = c + i * Shape::kWidth;
      dy[i] = load_as<V>(static_cast<const T*>(row.outputs) + w * row.pitch + channel);
      code[i] = load_as<I>(static_cast<const PoolCode<T>*>(row.codes) + w * row.channels + channel) |
                ~Shape::first_lanes(row.channels - channel);  // No tap for lanes beyond the last channel.
    }
    taps.each([&](std::int64_t tap, std::int64_t offset) {
      const I at = I{} + static_cast<PoolCode<T>>(tap);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        T* const to = dx + offset + i * Shape::kWidth;
        store_as(to, load_as<V>(to) + (code[i] == at ? dy[i] : V{}));
      }
    });
  }
};

// Whether each element of the image is of one window at most, and the row's windows are inside it.
inline bool are_apart_inside(const PoolBackwardRow& row) noexcept {
  return row.are_apart && row.top >= 0 && row.top + row.taps_down <= row.rows && row.left >= 0 &&
         row.left + (row.windows - 1) * row.column_stride + row.taps_across <= row.columns;
}

// Few channels and separate windows: writes every tap, line by line from left to right, in vectors whose lanes beyond
// the last channel are zeros; the elements under those lanes are written later or stay zero.
template <class T, int kVectors>
void spread_max(const PoolBackwardRow& row) noexcept {
  using X = PoolVector<T>;
  using V = typename X::V;
  using I = typename X::I;
  const std::int64_t channels = row.channels, pitch = row.pitch, across = row.taps_across, windows = row.windows;
  const std::int64_t step = row.column_stride * pitch, width = kVectors * X::kWidth;
  I ours[kVectors];
  for (int v = 0; v < kVectors; ++v) ours[v] = X::first_lanes(channels - v * X::kWidth);
  for (std::int64_t i = 0; i < row.taps_down; ++i) {
    T* to = static_cast<T*>(row.image) + ((row.top + i) * row.columns + row.left) * pitch;
    const T* dy = static_cast<const T*>(row.outputs);
    const auto* code = static_cast<const PoolCode<T>*>(row.codes);
    // Windows whose vectors end inside dy and the image.
    const std::int64_t room = static_cast<const T*>(row.end) - to - (across - 1) * pitch - width;
    const std::int64_t inside = (windows * pitch - width) / pitch + 1;
    const std::int64_t whole = windows * pitch < width || room < 0 ? 0
                               : inside < room / step + 1          ? inside
                                                                   : room / step + 1;
    std::int64_t w = 0;
    for (; w < windows && w < whole; ++w, to += step, dy += pitch, code += channels) {
      V slope[kVectors];
      I at[kVectors];
      for (int v = 0; v < kVectors; ++v)
        slope[v] = load_as<V>(dy + v * X::kWidth), at[v] = load_as<I>(code + v * X::kWidth) | ~ours[v];
      for (std::int64_t j = 0; j < across; ++j)
        for (int v = 0; v < kVectors; ++v)
          store_as(to + j * pitch + v * X::kWidth, at[v] == static_cast<PoolCode<T>>(i * across + j) ? slope[v] : V{});
    }
    for (; w < windows; ++w, to += step, dy += pitch, code += channels)
      for (std::int64_t j = 0; j < across; ++j)
        for (std::int64_t c = 0; c < channels; ++c)
          to[j * pitch + c] = code[c] == static_cast<PoolCode<T>>(i * across + j) ? dy[c] : T(0);
  }
}

// Few channels: adds each output's gradient to its one element.
template <class T>
void scatter_max(const PoolBackwardRow& row) noexcept {
  constexpr std::int64_t kMostTaps = 256;
  std::int64_t steps[kMostTaps];
  for (std::int64_t tap = 0; tap < row.taps_down * row.taps_across; ++tap)
    steps[tap] =
        (tap / row.taps_across * row.row_dilation * row.columns + tap % row.taps_across * row.column_dilation) *
        row.pitch;
  const TapRange down = taps_inside(row.top, row.taps_down, row.row_dilation, row.rows);
  const auto* code = static_cast<const PoolCode<T>*>(row.codes);
  for (std::int64_t w = 0; w < row.windows; ++w, code += row.channels) {
    const PoolTaps taps(row, down, w);
    if (taps.count() == 0) continue;
    T* const dx = static_cast<T*>(row.image) + taps.offset;
    const T* const dy = static_cast<const T*>(row.outputs) + w * row.pitch;
    for (std::int64_t c = 0; c < row.channels; ++c) dx[steps[code[c]] + c] += dy[c];
  }
}

template <class Shape, class T, int kVectors>
struct AverageBackward {
  static void run(const PoolBackwardRow& row, const PoolTaps& taps, std::int64_t w, std::int64_t c) noexcept {
    using V = typename Shape::V;
    T* dx = static_cast<T*>(row.image) + c;
    const std::int64_t count = taps.count() == 0 ? 1 : taps.count();
    V share[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      const std::int64_t channel = c + i * Shape::kWidth;
      const V dy = load_as<V>(static_cast<const T*>(row.outputs) + w * row.pitch + channel) / static_cast<T>(count);
      share[i] = Shape::first_lanes(row.channels - channel) != 0 ? dy : V{};
    }
    taps.each([&](std::int64_t, std::int64_t offset) {
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        T* const to = dx + offset + i * Shape::kWidth;
        store_as(to, load_as<V>(to) + share[i]);
      }
    });
  }
};

// Vectors as far as they stay in bounds, then one channel at a time.
template <class T, template <class, class, int> class Work, class Row>
void pool(const Row& row) {
  using Wide = PoolVector<T>;
  constexpr std::int64_t kWidth = Wide::kWidth;
  const std::int64_t limit = static_cast<const T*>(row.end) - static_cast<const T*>(row.image);
  const TapRange down = taps_inside(row.top, row.taps_down, row.row_dilation, row.rows);
  for (std::int64_t w = 0; w < row.windows; ++w) {
    const PoolTaps taps(row, down, w);
    const std::int64_t outputs_left = (row.windows - 1 - w) * row.pitch + row.channels;
    std::int64_t c = 0;
    for (; c + 4 * kWidth <= row.channels; c += 4 * kWidth) Work<Wide, T, 4>::run(row, taps, w, c);
    for (; c + kWidth <= row.channels; c += kWidth) Work<Wide, T, 1>::run(row, taps, w, c);
    if (c == row.channels) continue;
    if (row.pitch == row.channels && c + kWidth <= outputs_left && taps.last() + c + kWidth <= limit)
      Work<Wide, T, 1>::run(row, taps, w, c);
    else
      for (; c < row.channels; ++c) Work<PoolScalar<T>, T, 1>::run(row, taps, w, c);
  }
}

template <class T>
void max_gradient(const PoolBackwardRow& row) {
  constexpr std::int64_t kWidth = PoolVector<T>::kWidth;
  if (row.channels < 2 * kWidth && are_apart_inside(row))
    return row.channels <= kWidth ? spread_max<T, 1>(row) : spread_max<T, 2>(row);
  if (row.channels < 2 * kWidth && row.taps_down * row.taps_across <= 256) return scatter_max<T>(row);
  pool<T, MaxBackward>(row);
}

template <class T, int kBits>
void pack_groups(const PoolCode<T>* codes, std::int64_t n, std::byte* to) noexcept {
  for (std::int64_t i = 0; i < n; i += 8, to += kBits) {
    std::uint8_t bytes[8];
    for (int j = 0; j < 8; ++j) bytes[j] = static_cast<std::uint8_t>(codes[i + j]);
    std::uint64_t group = load_as<std::uint64_t>(bytes);
    if constexpr (kBits < 8) group = joined<kBits>(group);
    std::memcpy(to, &group, kBits);
  }
}

template <class T, int kBits>
void unpack_groups(const std::byte* from, std::int64_t n, PoolCode<T>* codes) noexcept {
  for (std::int64_t i = 0; i < n; i += 8, from += kBits) {
    std::uint64_t group = 0;
    std::memcpy(&group, from, kBits);
    if constexpr (kBits < 8) group = spread<kBits>(group);
    std::uint8_t bytes[8];
    store_as(bytes, group);
    for (int j = 0; j < 8; ++j) codes[i + j] = bytes[j];
  }
}

template <class T>
void pack_codes(const void* data, std::int64_t n, int bits, std::byte* to) {
  const auto* codes = static_cast<const PoolCode<T>*>(data);
  if (bits == 1) return pack_groups<T, 1>(codes, n, to);
  if (bits == 2) return pack_groups<T, 2>(codes, n, to);
  if (bits == 4) return pack_groups<T, 4>(codes, n, to);
  if (bits == 8) return pack_groups<T, 8>(codes, n, to);
  for (std::int64_t i = 0; i < n; ++i) store_as(to + i * 4, static_cast<std::int32_t>(codes[i]));
}

template <class T>
void unpack_codes(const std::byte* from, std::int64_t n, int bits, void* data) {
  auto* codes = static_cast<PoolCode<T>*>(data);
  if (bits == 1) return unpack_groups<T, 1>(from, n, codes);
  if (bits == 2) return unpack_groups<T, 2>(from, n, codes);
  if (bits == 4) return unpack_groups<T, 4>(from, n, codes);
  if (bits == 8) return unpack_groups<T, 8>(from, n, codes);
  for (std::int64_t i = 0; i < n; ++i) codes[i] = load_as<std::int32_t>(from + i * 4);
}

template <class T>
constexpr PoolingLoops kPoolingOf = {pool<T, MaxForward>, pool<T, TakeForward>,     pool<T, AverageForward>,
                                     max_gradient<T>,     pool<T, AverageBackward>, pack_codes<T>,
                                     unpack_codes<T>};

}  // namespace

constinit const PoolingTable PLIMSOLL_INSTRUCTION_SET::pooling_loops = {kPoolingOf<float>, kPoolingOf<double>};

}  // namespace plimsoll::internal
