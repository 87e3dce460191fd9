#include "plimsoll/kernels/sparse.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;

template <class T>
T sum_of(T a, T b) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return T(static_cast<float>(a) + static_cast<float>(b));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class T>
auto number(T x) noexcept {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return static_cast<float>(x);
  else
    return x;
}

template <class T>
T lowest() noexcept {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return T(-std::numeric_limits<float>::infinity());
  else if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
bool replaces(T candidate, T best) noexcept {
  const auto x = number(candidate), y = number(best);
  return x > y || x != x;
}

template <class F>
void each_place(const ConstTensorView& indices, const SparseSteps& steps, F&& f) noexcept {
  const std::int64_t* at = indices.data<std::int64_t>();
  const std::int64_t entries = indices.shape()[0];
  for (std::int64_t k = 0; k < entries; ++k, at += steps.rank) f(k, steps.place(at));
}

}  // namespace

SparseSteps sparse_steps(const Shape& dense, std::size_t rank) noexcept {
  PLIMSOLL_CHECK(dense.rank() <= rank);
  SparseSteps result;
  result.rank = rank;
  const Strides strides = row_major_strides(dense);
  for (std::size_t axis = 0; axis < dense.rank(); ++axis)
    result.steps[rank - dense.rank() + axis] = dense[axis] == 1 ? 0 : strides[axis];
  return result;
}

void sparse_take(const ConstTensorView& x, const ConstTensorView& indices, const SparseSteps& steps,
                 const TensorView& out) noexcept {
  const std::int64_t* at = indices.data<std::int64_t>();
  const auto rank = static_cast<std::int64_t>(steps.rank);
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    parallel_for(static_cast<std::int64_t>(out.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) to[k] = from[steps.place(at + k * rank)];
    });
  });
}

void sparse_add_at(const ConstTensorView& values, const ConstTensorView& indices, const SparseSteps& steps,
                   const TensorView& out) noexcept {
  if (out.size() > 0) std::memset(out.bytes(), 0, out.nbytes());
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = values.data<T>();
    T* to = out.data<T>();
    each_place(indices, steps, [&](std::int64_t k, std::int64_t place) { to[place] = sum_of(to[place], from[k]); });
  });
}

void sparse_max_at(const ConstTensorView& values, const ConstTensorView& indices, const SparseSteps& steps,
                   std::int64_t full, const TensorView& counts, const TensorView& out) noexcept {
  std::int64_t* count = counts.data<std::int64_t>();
  std::fill_n(count, out.size(), std::int64_t{0});
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = values.data<T>();
    T* to = out.data<T>();
    std::fill_n(to, out.size(), lowest<T>());
    each_place(indices, steps, [&](std::int64_t k, std::int64_t place) {
      ++count[place];
      if (replaces(from[k], to[place])) to[place] = from[k];
    });
    for (std::size_t i = 0; i < out.size(); ++i)
      if (count[i] < full && replaces(T(0), to[i])) to[i] = T(0);
  });
}

std::int64_t count_nonzero(const ConstTensorView& x) noexcept {
  return visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    return static_cast<std::int64_t>(
        std::count_if(from, from + x.size(), [](T element) { return number(element) != 0; }));
  });
}

void nonzero_coordinates(const ConstTensorView& x, std::int64_t* coordinates) noexcept {
  const Shape& shape = x.shape();
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    const T* from = x.data<T>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (number(from[i]) == 0) continue;
      auto place = static_cast<std::int64_t>(i);
      for (std::size_t axis = shape.rank(); axis-- > 0; place /= shape[axis]) coordinates[axis] = place % shape[axis];
      coordinates += shape.rank();
    }
  });
}

void sparse_row_splits(const std::int64_t* indices, std::int64_t entries, std::size_t rank, std::int64_t rows,
                       std::int64_t* splits) noexcept {
  std::int64_t row = 0;
  splits[0] = 0;
  for (std::int64_t k = 0; k < entries; ++k, indices += rank)
    while (row < *indices) splits[++row] = k;
  while (row < rows) splits[++row] = entries;
}

void sparse_transpose(const SparseRows& a, std::int64_t* splits, std::int64_t* columns, std::int64_t* order) noexcept {
  const std::int64_t entries = a.entries();
  std::fill_n(splits, a.width + 1, std::int64_t{0});
  // Counted one place ahead, so that splits[c + 1] is where column c continues and finally ends.
  for (std::int64_t k = 0; k < entries; ++k)
    if (a.columns[k] + 2 <= a.width) ++splits[a.columns[k] + 2];
  for (std::int64_t c = 2; c <= a.width; ++c) splits[c] += splits[c - 1];
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t k = a.splits[r]; k < a.splits[r + 1]; ++k) {
      const std::int64_t to = splits[a.columns[k] + 1]++;
      columns[to] = r;
      order[to] = k;
    }
}

}  // namespace plimsoll::internal
