// transpose_block: transposes a square of elements, y[r * to + c] = x[r + c * from], so that every cache line on either
// side is read or written at once: with strides of a power of two, lines do not evict each other.
#pragma once

#include <cstdint>
#include <cstring>

namespace plimsoll::internal {

// Elements on a side.
template <class T>
inline constexpr std::int64_t kSquare = sizeof(T) >= 4 ? 16 : 32;

// The square in order of rows. Four by four in registers for elements of four bytes.
template <class T>
inline void turn_over(const T* x, std::int64_t from, T (*square)[kSquare<T>]) noexcept {
  if constexpr (sizeof(T) == 4) {
    typedef T Four __attribute__((vector_size(16)));
    for (std::int64_t c = 0; c < kSquare<T>; c += 4)
      for (std::int64_t r = 0; r < kSquare<T>; r += 4) {
        Four v[4];
        for (int k = 0; k < 4; ++k) std::memcpy(&v[k], x + (c + k) * from + r, sizeof(Four));
        const Four a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
                   b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
        const Four d = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
                   e = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
        v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5), v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        v[2] = __builtin_shufflevector(d, e, 0, 1, 4, 5), v[3] = __builtin_shufflevector(d, e, 2, 3, 6, 7);
        for (int k = 0; k < 4; ++k) std::memcpy(&square[r + k][c], &v[k], sizeof(Four));
      }
  } else {
    for (std::int64_t c = 0; c < kSquare<T>; ++c)
      for (std::int64_t r = 0; r < kSquare<T>; ++r) square[r][c] = x[c * from + r];
  }
}

// Requires rows, columns <= kSquare<T>.
template <class T>
inline void transpose_block(const T* x, std::int64_t from, T* y, std::int64_t to, std::int64_t rows,
                            std::int64_t columns) noexcept {
  if (rows == kSquare<T> && columns == kSquare<T>) {
    alignas(64) T square[kSquare<T>][kSquare<T>];
    turn_over(x, from, square);
    for (std::int64_t r = 0; r < rows; ++r) std::memcpy(y + r * to, square[r], sizeof square[r]);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) y[r * to + c] = x[r + c * from];
}

}  // namespace plimsoll::internal
