#include "plimsoll/kernels/order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kSlots = 8;       // Rows in progress at once.
constexpr std::int64_t kFew = 32;        // Positions that are kept sorted.
constexpr std::int64_t kRowsAtOnce = 4;  // Running sums side by side.
constexpr std::int64_t kColumns = 256;   // Likewise, of columns.

// Positions of a row by value, then by place.
template <class T>
struct Before {
  const T* x;
  bool descending;
  static bool less(T a, T b) noexcept { return a < b || (b != b && a == a); }
  bool operator()(std::int64_t i, std::int64_t j) const noexcept {
    const T a = x[i], b = x[j];
    if (descending ? less(b, a) : less(a, b)) return true;
    if (descending ? less(a, b) : less(b, a)) return false;
    return i < j;
  }
};

// The positions of the k largest, in order: kept sorted during one pass, if they are few. `order` has n
// places.
template <class T>
void first_by_value(const T* x, std::int64_t n, std::int64_t k, std::int64_t* order) noexcept {
  const Before<T> before = {x, true};
  if (k > kFew) {
    std::iota(order, order + n, std::int64_t{0});
    std::partial_sort(order, order + k, order + n, before);
    return;
  }
  std::iota(order, order + k, std::int64_t{0});
  std::sort(order, order + k, before);
  T last = x[order[k - 1]];
  for (std::int64_t i = k; i < n; ++i) {
    if (!Before<T>::less(last, x[i])) continue;
    std::int64_t place = k - 1;
    for (; place > 0 && Before<T>::less(x[order[place - 1]], x[i]); --place) order[place] = order[place - 1];
    order[place] = i;
    last = x[order[k - 1]];
  }
}

// Running sums of kRows rows side by side, each a dense run: they do not wait for each other.
template <class T, class Sum, int kRows>
void sum_runs(const T* x, std::int64_t n, std::int64_t row_stride, CumsumFlags flags, T* y) noexcept {
  Sum sums[kRows] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = flags.reverse ? n - 1 - i : i;
    for (int row = 0; row < kRows; ++row) {
      const Sum before = sums[row];
      sums[row] += static_cast<Sum>(x[at + row * row_stride]);
      y[at + row * row_stride] = static_cast<T>(flags.exclusive ? before : sums[row]);
    }
  }
}

// Running sums of up to kColumns columns.
template <class T, class Sum>
void sum_columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t columns, CumsumFlags flags,
                 T* y) noexcept {
  Sum sums[kColumns] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = (flags.reverse ? n - 1 - i : i) * stride;
    for (std::int64_t c = 0; c < columns; ++c) {
      const Sum before = sums[c];
      sums[c] += static_cast<Sum>(x[at + c]);
      y[at + c] = static_cast<T>(flags.exclusive ? before : sums[c]);
    }
  }
}

// The value's rank among all values of its type, as an unsigned number: NaN last, both zeros equal.
template <class T>
std::uint32_t sort_key(T x) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? static_cast<std::uint32_t>(x) ^ 0x80000000u : static_cast<std::uint32_t>(x);
  } else {
    const float value = static_cast<float>(x) + 0.f;
    if (value != value) return UINT32_MAX;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }
}

// Sorts positions by value, as numbers made of a value's rank and its position. They take the memory of the positions.
// Requires elements of at most four bytes, n <= 2^32.
template <class T>
void sort_by_keys(const T* x, std::int64_t n, bool descending, std::int64_t* order) noexcept {
  auto* keys = reinterpret_cast<std::uint64_t*>(order);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t key = sort_key(x[i]);
    keys[i] = std::uint64_t{descending ? ~key : key} << 32 | static_cast<std::uint64_t>(i);
  }
  std::sort(keys, keys + n);
  for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int64_t>(keys[i] & UINT32_MAX);
}

template <class T>
void sort_positions(const T* x, std::int64_t n, bool descending, std::int64_t* order) noexcept {
  if constexpr (sizeof(T) <= 4)
    if (n <= UINT32_MAX) return sort_by_keys(x, n, descending, order);
  std::iota(order, order + n, std::int64_t{0});
  std::sort(order, order + n, Before<T>{x, descending});
}

std::int64_t rows_of(const Shape& shape) noexcept {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}
std::int64_t slots_of(const Shape& shape) noexcept { return std::min(kSlots, rows_of(shape)); }

}  // namespace

void sort(const ConstTensorView& x, SortFlags flags, const TensorView& values, const TensorView& indices) noexcept {
  if (x.size() == 0) return;
  const std::int64_t n = x.shape().back();
  auto* positions = indices.data<std::int64_t>();
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    T* to = values.data<T>();
    parallel_for(rows_of(x.shape()), std::max<std::int64_t>(1, 2048 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        std::int64_t* order = positions + r * n;
        sort_positions(from + r * n, n, flags.descending, order);
        for (std::int64_t i = 0; i < n; ++i) to[r * n + i] = from[r * n + order[i]];
      }
    });
  });
}

std::size_t top_k_scratch_bytes(const Shape& x) noexcept {
  return static_cast<std::size_t>(slots_of(x) * x.back()) * sizeof(std::int64_t);
}

void top_k(const ConstTensorView& x, std::int64_t k, const TensorView& values, const TensorView& indices,
           std::span<std::byte> scratch) noexcept {
  if (values.size() == 0) return;
  PLIMSOLL_CHECK(k <= x.shape().back() && scratch.size() >= top_k_scratch_bytes(x.shape()));
  const std::int64_t n = x.shape().back(), rows = rows_of(x.shape()), slots = slots_of(x.shape());
  auto* positions = indices.data<std::int64_t>();
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    T* to = values.data<T>();
    parallel_for(slots, rows * n < 8192 ? slots : 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot) {
        std::int64_t* order = reinterpret_cast<std::int64_t*>(scratch.data()) + slot * n;
        for (std::int64_t r = slot; r < rows; r += slots) {
          first_by_value(from + r * n, n, k, order);
          for (std::int64_t i = 0; i < k; ++i) to[r * k + i] = from[r * n + order[i]], positions[r * k + i] = order[i];
        }
      }
    });
  });
}

void cumsum(const ConstTensorView& x, std::size_t axis, CumsumFlags flags, const TensorView& out) noexcept {
  if (x.size() == 0) return;
  PLIMSOLL_CHECK(x.dtype() != boolean);
  const Shape& shape = x.shape();
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  const std::int64_t n = shape[axis];
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
    const T* from = x.data<T>();
    T* to = out.data<T>();
    const std::int64_t columns = std::min(inner, kColumns), tiles = divide_up(inner, columns);
    const std::int64_t rows = inner == 1 ? kRowsAtOnce : 1, groups = divide_up(outer, rows);
    parallel_for(groups * tiles, std::max<std::int64_t>(1, 16384 / (n * rows * columns)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t task = begin; task < end; ++task) {
                     const std::int64_t first = task / tiles * rows, column = task % tiles * columns;
                     const std::int64_t at = first * n * inner + column, left = std::min(rows, outer - first);
                     if (inner > 1)
                       sum_columns<T, Sum>(from + at, n, inner, std::min(columns, inner - column), flags, to + at);
                     else if (left == kRowsAtOnce)
                       sum_runs<T, Sum, kRowsAtOnce>(from + at, n, n, flags, to + at);
                     else
                       for (std::int64_t r = 0; r < left; ++r)
                         sum_runs<T, Sum, 1>(from + at + r * n, n, n, flags, to + at + r * n);
                   }
                 });
  });
}

}  // namespace plimsoll::internal
