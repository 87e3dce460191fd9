// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/group_norm_loops.h"

namespace plimsoll::internal {
namespace {

template <class T>
void add_rows(const T* x, std::int64_t rows, std::int64_t n, T* sums) {
  for (std::int64_t r = 0; r < rows; ++r, x += n)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < n; ++c) sums[c] += x[c];
}

template <class T>
void add_squares(const T* x, std::int64_t rows, std::int64_t n, const T* mean, T* sums) {
  for (std::int64_t r = 0; r < rows; ++r, x += n)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < n; ++c) sums[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
}

template <class T>
void add_slopes(const T* x, const T* dy, std::int64_t rows, std::int64_t n, const T* mean, const T* rstd, T* first,
                T* second) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, dy += n)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < n; ++c) {
      first[c] += dy[c];
      second[c] += dy[c] * ((x[c] - mean[c]) * rstd[c]);
    }
}

template <class T>
void normalize(const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* factor, const T* shift, T* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < n; ++c) y[c] = (x[c] - mean[c]) * factor[c] + shift[c];
}

template <class T>
void gradient(const T* x, const T* dy, std::int64_t rows, std::int64_t n, const T* mean, const T* factor,
              const T* first, const T* second, T* dx) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, dy += n, dx += n)
#pragma GCC ivdep
    for (std::int64_t c = 0; c < n; ++c) dx[c] = dy[c] * factor[c] - first[c] - (x[c] - mean[c]) * second[c];
}

template <class T>
constexpr GroupNormLoopsOf<T> kGroupNormOf = {add_rows<T>, add_squares<T>, add_slopes<T>, normalize<T>, gradient<T>};

}  // namespace

constinit const GroupNormLoops PLIMSOLL_INSTRUCTION_SET::group_norm_loops = {kGroupNormOf<float>, kGroupNormOf<double>};

}  // namespace plimsoll::internal
