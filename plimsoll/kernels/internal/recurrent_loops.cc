// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/recurrent_loops.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/internal/recurrent_gates.h"
#include "plimsoll/kernels/internal/vector.h"

namespace plimsoll::internal {
namespace {

template <class T>
inline constexpr std::int64_t kPanelColumns = 2 * kLanesOf<T>;

// Four by four, from rows `from_stride` apart to rows `to_stride` apart.
inline void transpose_4(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) noexcept {
  Four<float> r[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&r[i], from + i * from_stride, sizeof r[i]);
  transpose<float>(r);
  for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * to_stride, &r[i], sizeof r[i]);
}

// One panel of `count` columns.
template <class T>
void pack_panel(const T* b, std::int64_t k, std::int64_t count, std::int64_t deep, std::int64_t along, T* to) noexcept {
  constexpr std::int64_t kColumns = kPanelColumns<T>;
  std::int64_t p = 0;
  if (count == kColumns && along == 1)
    for (; p < k; ++p) __builtin_memcpy(to + p * kColumns, b + p * deep, sizeof(T) * kColumns);
  if constexpr (sizeof(T) == 4)
    if (count == kColumns && deep == 1)
      for (; p + 4 <= k; p += 4)
        for (std::int64_t i = 0; i < kColumns; i += 4)
          transpose_4(b + i * along + p, along, to + p * kColumns + i, kColumns);
  for (; p < k; ++p)
    for (std::int64_t i = 0; i < kColumns; ++i) to[p * kColumns + i] = i < count ? b[p * deep + i * along] : T(0);
}

template <class T>
void pack_panels(const T* b, std::int64_t k, std::int64_t n, std::int64_t deep, std::int64_t along, T* to) {
  constexpr std::int64_t kColumns = kPanelColumns<T>;
  for (std::int64_t j = 0; j < n; j += kColumns)
    pack_panel(b + j * along, k, n - j < kColumns ? n - j : kColumns, deep, along, to + j * k);
}

constexpr int kTileRows = 6;

template <class T, int kRows>
void multiply_tile(const T* a, std::int64_t a_along, std::int64_t a_deep, std::int64_t k, const T* panel,
                   std::int64_t n, T* c, std::int64_t c_stride, bool accumulate) noexcept {
  using V = Vector<T>;
  constexpr std::int64_t kColumns = kPanelColumns<T>;
  V sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = V{};
  for (std::int64_t p = 0; p < k; ++p, panel += kColumns, a += a_deep) {
    const V b0 = load(panel), b1 = load(panel + kLanesOf<T>);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V ai = a[i * a_along] - V{};
      sum[i][0] += ai * b0;
      sum[i][1] += ai * b1;
    }
  }
  if (n == kColumns) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += c_stride) {
      store(c, accumulate ? sum[i][0] + load(c) : sum[i][0]);
      store(c + kLanesOf<T>, accumulate ? sum[i][1] + load(c + kLanesOf<T>) : sum[i][1]);
    }
    return;
  }
  alignas(64) T row[kColumns];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += c_stride) {
    store(row, sum[i][0]);
    store(row + kLanesOf<T>, sum[i][1]);
    for (std::int64_t j = 0; j < n; ++j) c[j] = accumulate ? c[j] + row[j] : row[j];
  }
}

template <class T>
void multiply_panels(const T* a, std::int64_t a_along, std::int64_t a_deep, std::int64_t m, std::int64_t k,
                     const T* panels, std::int64_t n, T* c, std::int64_t c_stride, bool accumulate) {
  constexpr std::int64_t kColumns = kPanelColumns<T>;
  using Tile = void (*)(const T*, std::int64_t, std::int64_t, std::int64_t, const T*, std::int64_t, T*, std::int64_t,
                        bool) noexcept;
  constexpr Tile kTiles[kTileRows] = {multiply_tile<T, 1>, multiply_tile<T, 2>, multiply_tile<T, 3>,
                                      multiply_tile<T, 4>, multiply_tile<T, 5>, multiply_tile<T, 6>};
  const std::int64_t tiles = divide_up(m, kTileRows);
  for (std::int64_t j = 0; j < n; j += kColumns, panels += k * kColumns) {
    const std::int64_t count = n - j < kColumns ? n - j : kColumns;
    for (std::int64_t t = 0, row = 0; t < tiles; ++t) {  // As even as possible.
      const std::int64_t rows = (m - row + tiles - t - 1) / (tiles - t);
      kTiles[rows - 1](a + row * a_along, a_along, a_deep, k, panels, count, c + row * c_stride + j, c_stride,
                       accumulate);
      row += rows;
    }
  }
}

template <class T>
constexpr RecurrentLoopsOf<T> kRecurrentOf = {kPanelColumns<T>,
                                              pack_panels<T>,
                                              multiply_panels<T>,
                                              by_activations<SimpleGate, T>,
                                              by_activations<LstmGates, T>,
                                              by_activations<GruGates, T>,
                                              by_activations<GruReset<false>, T>,
                                              by_activations<GruReset<true>, T>,
                                              by_activations<LstmOutput, T>,
                                              by_activations<SimpleBack, T>,
                                              by_activations<LstmBack, T>,
                                              by_activations<GruBack, T>,
                                              by_activations<GruResetBack<false>, T>,
                                              by_activations<GruResetBack<true>, T>};

}  // namespace

constinit const RecurrentLoops PLIMSOLL_INSTRUCTION_SET::recurrent_loops = {kRecurrentOf<float>, kRecurrentOf<double>};

}  // namespace plimsoll::internal
