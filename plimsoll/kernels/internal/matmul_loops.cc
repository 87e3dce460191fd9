// Compiled once per instruction set: see instruction_sets.h.
#include <algorithm>
#include <array>
#include <utility>

#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/internal/matmul_loops.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

// The most rows of a tile that is one to four vectors wide: enough sums to keep the multipliers busy, few enough
// for the registers. Packed panels are for tiles of two vectors.
#if defined(__AVX512F__)
constexpr int kMostRows[5] = {0, 12, 12, 8, 6};
#elif defined(__AVX2__)
constexpr int kMostRows[5] = {0, 8, 6, 4, 3};
#else
constexpr int kMostRows[5] = {0, 8, 4, 3, 2};
#endif
constexpr int kTileRows = kMostRows[2];

template <int kPart, class T>
void copy_if(T*& p, const T*& from, std::int64_t n) noexcept {
  if (!(n & kPart)) return;
  __builtin_memcpy(p, from, kPart * sizeof(T));
  p += kPart;
  from += kPart;
}
// The first n elements of a vector, by halves: masked stores are slow on some processors.
template <class T>
void store_by_halves(T* p, Vector<T> v, std::int64_t n) noexcept {
  T values[kLanesOf<T>];
  store(values, v);
  const T* from = values;
  if constexpr (kLanesOf < T >> 8) copy_if<8>(p, from, n);
  if constexpr (kLanesOf < T >> 4) copy_if<4>(p, from, n);
  if constexpr (kLanesOf < T >> 2) copy_if<2>(p, from, n);
  if (n & 1) *p = *from;
}

// Vectors of length k, four by four: element (i, p) from x[i * along + p] to to[p * kCount + i]. Where kCount is not a
// multiple of four, a block writes into the next column, which is overwritten after it; so the last column is copied
// separately.
template <class T, int kCount>
void pack_across(const T* x, std::int64_t k, std::int64_t along, T* to) {
  constexpr int kGroups = divide_up(kCount, 4), kBeyond = kCount % 4 != 0;
  std::int64_t p = 0;
  for (; p + 4 + kBeyond <= k; p += 4, to += 4 * kCount) {
    Four<T> four[kGroups][4];
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i)
        __builtin_memcpy(&four[g][i], x + std::min(4 * g + i, kCount - 1) * along + p, sizeof(Four<T>));
      transpose<T>(four[g]);
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q)
#pragma GCC unroll 8
      for (int g = 0; g < kGroups; ++g) __builtin_memcpy(to + q * kCount + 4 * g, &four[g][q], sizeof(Four<T>));
  }
  for (; p < k; ++p, to += kCount)
    for (int i = 0; i < kCount; ++i) to[i] = x[i * along + p];
}

template <class T, int kCount>
void pack(const void* data, std::int64_t count, std::int64_t k, std::int64_t along, std::int64_t deep, void* panel) {
  const T* x = static_cast<const T*>(data);
  T* to = static_cast<T*>(panel);
  if (count == kCount && along == 1) {
    for (std::int64_t p = 0; p < k; ++p, to += kCount, x += deep) __builtin_memcpy(to, x, kCount * sizeof(T));
  } else if (count == kCount && deep == 1) {
    pack_across<T, kCount>(x, k, along, to);
  } else {
    for (std::int64_t p = 0; p < k; ++p, to += kCount)
      for (std::int64_t i = 0; i < kCount; ++i) to[i] = i < count ? x[i * along + p * deep] : T(0);
  }
}

// What follows the sums of a tile.
template <class T>
struct TileEnd {
  const T* bias;  // From the tile's first column on, or null.
  bool rectifies;
  Vector<T> most;
};

// One tile: kRows rows of A, `row` apart and `column` along k (1 and kTileRows when packed), times kVectors vectors of
// the rows of B; a partial last vector has `last` elements.
template <class T, int kRows, int kVectors, bool kIsPacked, bool kIsPartial>
void multiply_tile(const T* a, std::int64_t row, std::int64_t column, const T* b, std::int64_t b_row, std::int64_t k,
                   T* c, std::int64_t c_row, std::int64_t last, bool accumulate, const TileEnd<T>& end) {
  using V = Vector<T>;
  if constexpr (kIsPacked) row = 1, column = kTileRows;
  const auto mask = first_lanes<T>(kIsPartial ? last : 1);
  const auto get = [&](const T* p, int v) {
    return kIsPartial && v == kVectors - 1 ? load_masked(p + v * kLanesOf<T>, mask) : load(p + v * kLanesOf<T>);
  };
  V sum[kRows][kVectors] = {};
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + i * c_row + v * kLanesOf<T>, 1);
  for (std::int64_t p = 0; p < k; ++p, a += column, b += b_row) {
    V across[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) across[v] = get(b, v);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V down = all_of<T>(a[i * row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] += down * across[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_row)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      V value = accumulate ? sum[i][v] + get(c, v) : sum[i][v];
      if (end.bias) value += get(end.bias, v);
      if (end.rectifies) value = rectified(value, end.most);
      if (kIsPartial && v == kVectors - 1)
        store_by_halves(c + v * kLanesOf<T>, value, last);
      else
        store(c + v * kLanesOf<T>, value);
    }
}

// Spreads a block's fetches over its tiles.
class AheadWalk {
 public:
  AheadWalk(const MatmulAhead& ahead, std::int64_t tiles) noexcept
      : ahead_(ahead), tiles_(tiles), at_(ahead.begin), row_(ahead.begin / ahead.lines), line_(at_ % ahead.lines) {}
  void next_tile() noexcept {
    const std::int64_t until = ahead_.begin + ++done_ * (ahead_.end - ahead_.begin) / tiles_;
    for (; at_ < until; ++at_) {
      __builtin_prefetch(ahead_.data + row_ * ahead_.row_bytes + line_ * 64, 0, 2);
      if (++line_ == ahead_.lines) line_ = 0, ++row_;
    }
  }

 private:
  const MatmulAhead& ahead_;
  const std::int64_t tiles_;
  std::int64_t at_, row_, line_, done_ = 0;
};

template <class T>
using TileLoop = void (*)(const T* a, std::int64_t row, std::int64_t column, const T* b, std::int64_t b_row,
                          std::int64_t k, T* c, std::int64_t c_row, std::int64_t last, bool accumulate,
                          const TileEnd<T>& end);

// The tiles of a width, by rows; the first entry is for one row.
template <class T, int kVectors, bool kIsPacked, bool kIsPartial, std::size_t... kIndex>
constexpr std::array<TileLoop<T>, sizeof...(kIndex)> tiles_of(std::index_sequence<kIndex...>) noexcept {
  return {multiply_tile<T, static_cast<int>(kIndex) + 1, kVectors, kIsPacked, kIsPartial>...};
}
template <class T, int kVectors, bool kIsPacked, bool kIsPartial>
constexpr auto kTiles = tiles_of<T, kVectors, kIsPacked, kIsPartial>(
    std::make_index_sequence<kIsPacked ? kTileRows : kMostRows[kVectors]>());

template <class T>
struct Column {  // A column of tiles: `width` columns.
  const TileLoop<T>* tiles;
  std::int64_t most_rows, width, last;
};

template <class T, int kVectors>
Column<T> column_of(std::int64_t width, bool is_packed) noexcept {
  const std::int64_t last = width % kLanesOf<T>;
  if constexpr (kVectors < 3)
    if (is_packed)
      return {last ? kTiles<T, kVectors, true, true>.data() : kTiles<T, kVectors, true, false>.data(), kTileRows, width,
              last};
  return {last ? kTiles<T, kVectors, false, true>.data() : kTiles<T, kVectors, false, false>.data(),
          kMostRows[kVectors], width, last};
}

// The next tiles when `left` columns remain: two vectors; for operands in place three when that is all, and four when
// there are few rows, so that long runs of B are read.
template <class T>
Column<T> next_column(std::int64_t left, const MatmulBlock& x) noexcept {
  constexpr std::int64_t kCount = kLanesOf<T>;
  const bool is_in_place = !x.is_a_packed && !x.is_b_packed && x.b_column == 1;
  if (left <= kCount) return column_of<T, 1>(left, x.is_a_packed);
  if (is_in_place && left > 3 * kCount && x.m <= kMostRows[4])
    return column_of<T, 4>(std::min(left, 4 * kCount), false);
  if (is_in_place && left > 2 * kCount && left <= 3 * kCount) return column_of<T, 3>(left, false);
  return column_of<T, 2>(std::min(left, 2 * kCount), x.is_a_packed);
}

template <class T>
void multiply_packed_rows(const MatmulBlock& x, const Column<T>& column, const T* b, std::int64_t b_row, T* c,
                          const TileEnd<T>& end, AheadWalk& ahead) {
  const T* a = static_cast<const T*>(x.a);
  constexpr std::int64_t kLine = 64 / sizeof(T);
  const T* next = b + b_row * x.k;  // The next panel of B, fetched into the second cache bit by bit.
  const std::int64_t lines = b_row * x.k / kLine * kTileRows / x.m + 1;
  for (std::int64_t i = 0; i < x.m; i += kTileRows) {
    const std::int64_t rows = std::min<std::int64_t>(kTileRows, x.m - i);
    for (std::int64_t line = 0; line < lines; ++line, next += kLine) __builtin_prefetch(next, 0, 2);
    ahead.next_tile();
    column.tiles[rows - 1](a + i * x.k, 1, kTileRows, b, b_row, x.k, c + i * x.c_row, x.c_row, column.last,
                           x.accumulate, end);
  }
}

// Some rows of A, into the first cache: where several rows are read side by side, the processor does not foresee it.
template <class T>
void prefetch_rows(const T* a, std::int64_t rows, const MatmulBlock& x) noexcept {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t p = 0; p < x.k; p += kLine) __builtin_prefetch(a + i * x.a_row + p);
}

// Rows are divided evenly: for 8 rows, 4 and 4 are faster than 6 and 2.
template <class T>
void multiply_rows_in_place(const MatmulBlock& x, const Column<T>& column, const T* b, std::int64_t b_row, T* c,
                            const TileEnd<T>& end, AheadWalk& ahead) {
  const T* a = static_cast<const T*>(x.a);
  const std::int64_t tiles = divide_up(x.m, column.most_rows), rows = x.m / tiles, more = x.m % tiles;
  for (std::int64_t t = 0; t < tiles; ++t) {
    const std::int64_t count = rows + (t < more);
    ahead.next_tile();
    if (x.a_column == 1 && t + 1 < tiles) prefetch_rows(a + count * x.a_row, rows + (t + 1 < more), x);
    column.tiles[count - 1](a, x.a_row, x.a_column, b, b_row, x.k, c, x.c_row, column.last, x.accumulate, end);
    a += count * x.a_row;
    c += count * x.c_row;
  }
}

constexpr std::int64_t kThinRows = 4;   // The most rows of A when B is read once, row after row.
constexpr std::int64_t kThinDepth = 8;  // Rows of B at once.

// Some of a row of C: kDepth rows of B, each times an element of A, added to what is there, in the order of k.
template <class T, int kDepth>
void add_rows(const T* a, std::int64_t a_column, const T* b, std::int64_t b_row, std::int64_t n, T* c, bool is_first) {
  using V = Vector<T>;
  V factor[kDepth];
  for (int p = 0; p < kDepth; ++p) factor[p] = all_of<T>(a[p * a_column]);
  std::int64_t j = 0;
  for (; j + kLanesOf<T> <= n; j += kLanesOf<T>) {
    V sum = is_first ? V{} : load(c + j);
#pragma GCC unroll 8
    for (int p = 0; p < kDepth; ++p) sum += factor[p] * load(b + p * b_row + j);
    store(c + j, sum);
  }
  if (j == n) return;
  const auto mask = first_lanes<T>(n - j);
  V sum = is_first ? V{} : load_masked(c + j, mask);
#pragma GCC unroll 8
  for (int p = 0; p < kDepth; ++p) sum += factor[p] * load_masked(b + p * b_row + j, mask);
  store_by_halves(c + j, sum, n - j);
}

// A few rows of A times a wide B, which is read from end to end: memory bandwidth is the bottleneck.
template <class T>
void multiply_thin(const MatmulBlock& x) {
  const T *a = static_cast<const T*>(x.a), *b = static_cast<const T*>(x.b);
  T* const c = static_cast<T*>(x.c);
  std::int64_t p = 0;
  for (; p + kThinDepth <= x.k; p += kThinDepth)
    for (std::int64_t i = 0; i < x.m; ++i)
      add_rows<T, kThinDepth>(a + i * x.a_row + p * x.a_column, x.a_column, b + p * x.b_row, x.b_row, x.n,
                              c + i * x.c_row, p == 0);
  for (; p < x.k; ++p)
    for (std::int64_t i = 0; i < x.m; ++i)
      add_rows<T, 1>(a + i * x.a_row + p * x.a_column, x.a_column, b + p * x.b_row, x.b_row, x.n, c + i * x.c_row,
                     p == 0);
}

// Bias and rectifier over a row of C.
template <class T>
void finish_row(T* c, std::int64_t n, const TileEnd<T>& end) {
  for (std::int64_t j = 0; j < n; ++j) {
    T value = c[j];
    if (end.bias) value += end.bias[j];
    if (end.rectifies) value = rectified(value, end.most[0]);
    c[j] = value;
  }
}

template <class T>
bool is_thin(const MatmulBlock& x) noexcept {
  return x.m <= kThinRows && x.n >= 16 * kLanesOf<T> && x.k >= kThinDepth && x.b_column == 1 && !x.accumulate &&
         !x.is_a_packed && !x.is_b_packed;
}

template <class T>
void multiply(const MatmulBlock& x) {
  TileEnd<T> end = {static_cast<const T*>(x.bias), x.rectifier.on, all<Vector<T>>(x.rectifier.most)};
  if (is_thin<T>(x)) {
    multiply_thin<T>(x);
    for (std::int64_t i = 0; i < x.m && (end.bias || end.rectifies); ++i)
      finish_row(static_cast<T*>(x.c) + i * x.c_row, x.n, end);
    return;
  }
  constexpr std::int64_t kColumns = 2 * kLanesOf<T>;
  AheadWalk ahead(x.ahead, std::max<std::int64_t>(1, divide_up(x.n, kColumns) * divide_up(x.m, kTileRows)));
  alignas(64) T panel[kMatmulStackDepth * kColumns];
  const T* b = static_cast<const T*>(x.b);
  T* c = static_cast<T*>(x.c);
  for (std::int64_t j = 0; j < x.n;) {
    const Column<T> column = next_column<T>(x.n - j, x);
    const T* across = x.is_b_packed ? b + j * x.k : b + j * x.b_column;
    std::int64_t b_row = x.is_b_packed ? kColumns : x.b_row;
    if (!x.is_b_packed && x.b_column != 1) {
      pack<T, kColumns>(across, column.width, x.k, x.b_column, x.b_row, panel);
      across = panel;
      b_row = kColumns;
    }
    if (x.is_a_packed)
      multiply_packed_rows(x, column, across, b_row, c + j, end, ahead);
    else
      multiply_rows_in_place(x, column, across, b_row, c + j, end, ahead);
    j += column.width;
    if (end.bias) end.bias += column.width;
  }
}

template <class T>
constexpr MatmulLoops kMatmulOf = {kTileRows, 2 * kLanesOf<T>, pack<T, kTileRows>, pack<T, 2 * kLanesOf<T>>,
                                   multiply<T>};

}  // namespace

constinit const MatmulTable PLIMSOLL_INSTRUCTION_SET::matmul_loops = {kMatmulOf<float>, kMatmulOf<double>};

}  // namespace plimsoll::internal
