#include "plimsoll/kernels/order.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kSlots = 8;  // Rows under way at once.

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
        std::iota(order, order + n, std::int64_t{0});
        std::sort(order, order + n, Before<T>{from + r * n, flags.descending});
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
          std::iota(order, order + n, std::int64_t{0});
          std::partial_sort(order, order + k, order + n, Before<T>{from + r * n, true});
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
    parallel_for(outer * inner, std::max<std::int64_t>(1, 16384 / n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t lane = begin; lane < end; ++lane) {
        const std::int64_t start = lane / inner * n * inner + lane % inner;
        Sum sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = start + (flags.reverse ? n - 1 - i : i) * inner;
          const Sum before = sum;
          sum += static_cast<Sum>(from[at]);
          to[at] = static_cast<T>(flags.exclusive ? before : sum);
        }
      }
    });
  });
}

}  // namespace plimsoll
