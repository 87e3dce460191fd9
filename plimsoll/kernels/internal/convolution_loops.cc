// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/convolution_loops.h"

#include <iterator>

#include "plimsoll/kernels/internal/convolution_winograd_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

// Rows of a tile of two vectors' and of one vector's width: as many sums as registers hold, and an address each.
#if defined(__AVX512F__)
constexpr int kWideRows = 10, kNarrowRows = 10;
#elif defined(__AVX2__)
constexpr int kWideRows = 6, kNarrowRows = 8;
#else
constexpr int kWideRows = 4, kNarrowRows = 6;
#endif

// Walks over a grid, pixel by pixel.
template <class Void>
struct PixelWalk {
  PixelGrid<Void> grid;
  std::int64_t columns, column = 0, row_offset = 0, offset = 0;
  std::int64_t next() noexcept {
    const std::int64_t here = offset;
    if (++column == columns) {
      column = 0;
      row_offset += grid.row_step;
      offset = row_offset;
    } else {
      offset += grid.column_step;
    }
    return here;
  }
};

template <class T, int kRows, int kVectors>
struct GatherTile {
  using V = Vector<T>;
  static constexpr std::int64_t kColumns = kVectors * kLanesOf<T>;

  const Gather& g;
  T bias[kColumns] = {};

  explicit GatherTile(const Gather& gather) noexcept : g(gather) {
    if (g.bias) std::memcpy(bias, g.bias, static_cast<std::size_t>(g.n) * sizeof(T));
  }

  // Tile `t` of the call. The first two fetch the next filter, every other pair of lines each; the others, what they
  // have already.
  void multiply(const T* const* pixels, T* const* to, int m, std::int64_t t) const noexcept {
    const T* a[kRows];
    for (int i = 0; i < kRows; ++i) a[i] = pixels[i];
    const T* b = static_cast<const T*>(g.filter);
    const bool fetches = g.next_filter && t < 2;
    const std::int64_t ahead =
        fetches ? static_cast<const std::byte*>(g.next_filter) - static_cast<const std::byte*>(g.filter) + 64 * t : 0;
    V sum[kRows][kVectors] = {};
    for (std::int64_t r = 0; r < g.num_runs; ++r) {
      const std::int64_t end = g.runs[r].offset + g.runs[r].length;
      for (std::int64_t p = g.runs[r].offset; p < end; ++p, b += kColumns) {
        V column[kVectors];
        for (int c = 0; c < kVectors; ++c) column[c] = load(b + c * kLanesOf<T>);
        __builtin_prefetch(reinterpret_cast<const std::byte*>(b) + ahead, 0, 2);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const V x = a[i][p] - V{};
#pragma GCC unroll 2
          for (int c = 0; c < kVectors; ++c) sum[i][c] += x * column[c];
        }
      }
    }
    finish(sum, to, m);
  }

  void finish(V (&sum)[kRows][kVectors], T* const* to, int m) const noexcept {
    const V most = all<V>(g.rectifier.most);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int c = 0; c < kVectors; ++c) {
        if (g.bias) sum[i][c] += load(bias + c * kLanesOf<T>);
        if (g.rectifier.on) sum[i][c] = rectified(sum[i][c], most);
      }
    }
    if (m == kRows && g.n == kColumns) {
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i)
        for (int c = 0; c < kVectors; ++c) store(to[i] + c * kLanesOf<T>, sum[i][c]);
      return;
    }
    alignas(64) T row[kColumns];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      for (int c = 0; c < kVectors; ++c) store(row + c * kLanesOf<T>, sum[i][c]);
      if (i < m)
        for (std::int64_t j = 0; j < g.n; ++j) to[i][j] = row[j];
    }
  }
};

// One row of pixels, which needs no walk.
template <class T, int kRows, int kVectors>
void gather_row(const Gather& g) noexcept {
  const GatherTile<T, kRows, kVectors> tile(g);
  const T* x = static_cast<const T*>(g.x.data);
  T* y = static_cast<T*>(g.y.data);
  for (std::int64_t left = g.columns, t = 0; left > 0; left -= kRows, ++t) {
    const T* pixels[kRows];
    T* to[kRows];
    const int m = left < kRows ? static_cast<int>(left) : kRows;
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t at = i < m ? i : 0;
      pixels[i] = x + at * g.x.column_step, to[i] = y + at * g.y.column_step;
    }
    tile.multiply(pixels, to, m, t);
    x += kRows * g.x.column_step, y += kRows * g.y.column_step;
  }
}

template <class T, int kRows, int kVectors>
void gather_tiles(const Gather& g) noexcept {
  if (g.rows == 1) return gather_row<T, kRows, kVectors>(g);
  const GatherTile<T, kRows, kVectors> tile(g);
  const T* x = static_cast<const T*>(g.x.data);
  T* y = static_cast<T*>(g.y.data);
  PixelWalk<const void> from = {g.x, g.columns};
  PixelWalk<void> into = {g.y, g.columns};
  for (std::int64_t left = g.rows * g.columns, t = 0; left > 0; left -= kRows, ++t) {
    const int m = left < kRows ? static_cast<int>(left) : kRows;
    const T* pixels[kRows];
    T* to[kRows];
    for (int i = 0; i < m; ++i) {
      pixels[i] = x + from.next();
      to[i] = y + into.next();
    }
    for (int i = m; i < kRows; ++i) {
      pixels[i] = pixels[0];
      to[i] = to[0];
    }
    tile.multiply(pixels, to, m, t);
  }
}

template <class T>
void gather(const Gather& g) {
  if (g.n > kLanesOf<T>)
    gather_tiles<T, kWideRows, 2>(g);
  else
    gather_tiles<T, kNarrowRows, 1>(g);
}

template <class T, int kRows, int kVectors>
void filter_tile(const GatherFilter& g, const T* const* rows, T* const* to, int m) noexcept {
  using V = Vector<T>;
  const T* a[kRows];
  for (int i = 0; i < kRows; ++i) a[i] = rows[i];
  V sum[kRows][kVectors] = {};
  for (std::int64_t u = 0; u < g.rows; ++u) {
    const T* b = static_cast<const T*>(g.dy.data) + u * g.dy.row_step;
    const std::int64_t begin = u * g.x.row_step, end = begin + g.columns * g.x.column_step;
    for (std::int64_t p = begin; p < end; p += g.x.column_step, b += g.dy.column_step) {
      V column[kVectors];
      for (int c = 0; c < kVectors; ++c) column[c] = load(b + c * kLanesOf<T>);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const V x = a[i][p] - V{};
#pragma GCC unroll 2
        for (int c = 0; c < kVectors; ++c) sum[i][c] += x * column[c];
      }
    }
  }
  if (m == kRows && g.n == kVectors * kLanesOf<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
      for (int c = 0; c < kVectors; ++c) {
        T* const at = to[i] + c * kLanesOf<T>;
        store(at, g.accumulate ? load(at) + sum[i][c] : sum[i][c]);
      }
    return;
  }
  alignas(64) T row[kVectors * kLanesOf<T>];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int c = 0; c < kVectors; ++c) store(row + c * kLanesOf<T>, sum[i][c]);
    if (i < m)
      for (std::int64_t j = 0; j < g.n; ++j) to[i][j] = g.accumulate ? to[i][j] + row[j] : row[j];
  }
}

template <class T, int kRows, int kVectors>
void filter_tiles(const GatherFilter& g) noexcept {
  for (std::int64_t k = 0; k < g.count; k += kRows) {
    const int m = g.count - k < kRows ? static_cast<int>(g.count - k) : kRows;
    const T* rows[kRows];
    T* to[kRows];
    for (int i = 0; i < kRows; ++i) {
      const std::int64_t at = i < m ? k + i : k;
      rows[i] = static_cast<const T*>(g.x.data) + g.offsets[at];
      to[i] = static_cast<T*>(g.dfilter) + at * g.stride;
    }
    filter_tile<T, kRows, kVectors>(g, rows, to, m);
  }
}

template <class T>
void gather_filter(const GatherFilter& g) {
  if (g.n > kLanesOf<T>)
    filter_tiles<T, kWideRows, 2>(g);
  else
    filter_tiles<T, kNarrowRows, 1>(g);
}

// kPixels adjacent outputs; each element of the filter is loaded once for all of them.
template <class T, int kPixels>
void depthwise_tile(const Depthwise& d, const T* x, T* y) noexcept {
  using V = Vector<T>;
  const T* a[kPixels];
  for (int i = 0; i < kPixels; ++i) a[i] = x + i * d.x_step;
  const V most = all<V>(d.rectifier.most);
  // Channels from c on; get(p) loads a vector, put(p, v) stores one.
  const auto run = [&](std::int64_t c, auto get, auto put) {
    const T* filter = static_cast<const T*>(d.filter) + c;
    V sum[kPixels] = {};
    for (std::int64_t r = 0; r < d.tap_rows; ++r) {
      const T* f = filter + r * d.filter_row_step;
      std::int64_t at = c + r * d.tap_row_step;
      for (std::int64_t t = 0; t < d.tap_columns; ++t, f += d.channels, at += d.tap_column_step) {
        const V factor = get(f);
#pragma GCC unroll 8
        for (int i = 0; i < kPixels; ++i) sum[i] += get(a[i] + at) * factor;
      }
    }
    const V bias = d.bias ? get(static_cast<const T*>(d.bias) + c) : V{};
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) {
      if (d.bias) sum[i] += bias;
      if (d.rectifier.on) sum[i] = rectified(sum[i], most);
      put(y + i * d.y_step + c, sum[i]);
    }
  };
  std::int64_t c = 0;
  for (; c + kLanesOf<T> <= d.channels; c += kLanesOf<T>)
    run(
        c, [](const T* p) { return load(p); }, [](T* p, V v) { store(p, v); });
  if (c == d.channels) return;
  const auto mask = first_lanes<T>(d.channels - c);
  run(
      c, [&](const T* p) { return load_masked(p, mask); }, [&](T* p, V v) { store_masked(p, v, mask); });
}

// Pixels are divided evenly into tiles: 14 are 7 and 7.
template <class T>
void depthwise(const Depthwise& d) {
  using Tile = void (*)(const Depthwise&, const T*, T*) noexcept;
  static constexpr Tile kTiles[] = {depthwise_tile<T, 1>, depthwise_tile<T, 2>, depthwise_tile<T, 3>,
                                    depthwise_tile<T, 4>, depthwise_tile<T, 5>, depthwise_tile<T, 6>,
                                    depthwise_tile<T, 7>, depthwise_tile<T, 8>};
  constexpr std::int64_t kMost = std::size(kTiles);
  const T* x = static_cast<const T*>(d.x);
  T* y = static_cast<T*>(d.y);
  const std::int64_t tiles = divide_up(d.pixels, kMost);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t count = (t + 1) * d.pixels / tiles - t * d.pixels / tiles;
    kTiles[count - 1](d, x, y);
    x += count * d.x_step, y += count * d.y_step;
  }
}

// One tap, channels [c, c + kVectors vectors).
template <class T, int kVectors>
inline void depthwise_tap(const DepthwiseFilter& d, std::int64_t tap, std::int64_t c) noexcept {
  using V = Vector<T>;
  V sum[kVectors] = {};
  for (std::int64_t u = 0; u < d.rows; ++u) {
    const T* x = static_cast<const T*>(d.x.data) + d.offsets[tap] + c + u * d.x.row_step;
    const T* dy = static_cast<const T*>(d.dy.data) + c + u * d.dy.row_step;
    for (std::int64_t v = 0; v < d.columns; ++v, x += d.x.column_step, dy += d.dy.column_step)
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sum[i] += load(x + i * kLanesOf<T>) * load(dy + i * kLanesOf<T>);
  }
  T* to = static_cast<T*>(d.dfilter) + tap * d.channels + c;
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i, to += kLanesOf<T>) store(to, d.accumulate ? load(to) + sum[i] : sum[i]);
}

template <class T>
void depthwise_filter(const DepthwiseFilter& d) {
  constexpr std::int64_t kWidth = kLanesOf<T>;
  for (std::int64_t t = 0; t < d.taps; ++t) {
    std::int64_t c = 0;
    for (; c + 4 * kWidth <= d.channels; c += 4 * kWidth) depthwise_tap<T, 4>(d, t, c);
    for (; c + kWidth <= d.channels; c += kWidth) depthwise_tap<T, 1>(d, t, c);
    for (; c < d.channels; ++c) {
      T sum = 0;
      const T* x = static_cast<const T*>(d.x.data) + d.offsets[t] + c;
      const T* dy = static_cast<const T*>(d.dy.data) + c;
      for (std::int64_t u = 0; u < d.rows; ++u)
        for (std::int64_t v = 0; v < d.columns; ++v)
          sum += x[u * d.x.row_step + v * d.x.column_step] * dy[u * d.dy.row_step + v * d.dy.column_step];
      T& to = static_cast<T*>(d.dfilter)[t * d.channels + c];
      to = d.accumulate ? to + sum : sum;
    }
  }
}

template <class T>
void pack_panel(const void* data, std::int64_t k, std::int64_t deep, std::int64_t along, std::int64_t n, void* panel) {
  const std::int64_t columns = n > kLanesOf<T> ? 2 * kLanesOf<T> : kLanesOf<T>;
  const T* x = static_cast<const T*>(data);
  T* to = static_cast<T*>(panel);
  if (along == 1 && n == columns) {
    for (std::int64_t p = 0; p < k; ++p, x += deep)
      for (std::int64_t j = 0; j < n; j += kLanesOf<T>, to += kLanesOf<T>) store(to, load(x + j));
    return;
  }
  for (std::int64_t p = 0; p < k; ++p, x += deep, to += columns) {
    for (std::int64_t j = 0; j < n; ++j) to[j] = x[j * along];
    for (std::int64_t j = n; j < columns; ++j) to[j] = T(0);
  }
}

template <class T>
void add_to(const void* from, void* to, std::int64_t n) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

template <class T>
constexpr WinogradLoops kWinogradOf = {winograd_input<T>, winograd_output<T>, winograd_slope<T>, winograd_filter<T>,
                                       winograd_taps<T>};

template <class T>
constexpr ConvolutionLoops kConvolutionOf = {kLanesOf<T>,         gather<T>,     gather_filter<T>, depthwise<T>,
                                             depthwise_filter<T>, pack_panel<T>, add_to<T>,        kWinogradOf<T>};

}  // namespace

constinit const ConvolutionTable PLIMSOLL_INSTRUCTION_SET::convolution_loops = {kConvolutionOf<float>,
                                                                                kConvolutionOf<double>};

}  // namespace plimsoll::internal
