#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/movement.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 32768;

struct Indices {
  explicit Indices(const ConstTensorView& view) noexcept : bytes(view.bytes()), wide(view.dtype() == i64) {
    PLIMSOLL_CHECK(wide || view.dtype() == i32);
  }
  std::int64_t operator[](std::int64_t i) const noexcept {
    return wide ? reinterpret_cast<const std::int64_t*>(bytes)[i] : reinterpret_cast<const std::int32_t*>(bytes)[i];
  }
  const std::byte* bytes;
  bool wide;
};

// Columns are divided among threads, so that one thread changes each element, in order.
template <class T>
void add_rows(const T* updates, const Indices& indices, std::int64_t count, std::int64_t width, T* out) noexcept {
  const std::int64_t part = std::max<std::int64_t>(64, kGrain / std::max<std::int64_t>(1, count));
  parallel_for(width, part, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T* from = updates + i * width;
      T* to = out + indices[i] * width;
      for (std::int64_t c = begin; c < end; ++c) {
        if constexpr (std::is_integral_v<T>)
          to[c] = static_cast<T>(static_cast<std::uint64_t>(to[c]) + static_cast<std::uint64_t>(from[c]));
        else
          to[c] += from[c];
      }
    }
  });
}

}  // namespace

std::int64_t first_bad_index(const ConstTensorView& indices, std::int64_t size) noexcept {
  const Indices values(indices);
  for (std::int64_t i = 0, n = static_cast<std::int64_t>(indices.size()); i < n; ++i)
    if (values[i] < 0 || values[i] >= size) return i;
  return -1;
}

void gather(const ConstTensorView& x, const ConstTensorView& indices, std::size_t axis,
            const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const Indices values(indices);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (std::size_t i = axis + 1; i < x.rank(); ++i) inner *= x.shape()[i];
  const std::int64_t size = x.shape()[axis], count = static_cast<std::int64_t>(indices.size());
  const std::size_t bytes = static_cast<std::size_t>(inner) * size_of(x.dtype());
  parallel_for(outer * count, std::max<std::int64_t>(1, kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(out.bytes() + static_cast<std::size_t>(i) * bytes,
                  x.bytes() + static_cast<std::size_t>(i / count * size + values[i % count]) * bytes, bytes);
  });
}

void scatter_add(const ConstTensorView& updates, const ConstTensorView& indices, const TensorView& out) noexcept {
  if (updates.size() == 0) return;
  const Indices values(indices);
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t width = static_cast<std::int64_t>(updates.size()) / count;
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (sizeof(T) >= 4)
      add_rows(updates.data<T>(), values, count, width, out.data<T>());
    else
      PLIMSOLL_CHECK(sizeof(T) >= 4);
  });
}

void scatter(const ConstTensorView& updates, const ConstTensorView& indices, const TensorView& out) noexcept {
  if (updates.size() == 0) return;
  const Indices values(indices);
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::size_t bytes = updates.nbytes() / static_cast<std::size_t>(count);
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(out.bytes() + static_cast<std::size_t>(values[i]) * bytes,
                updates.bytes() + static_cast<std::size_t>(i) * bytes, bytes);
}

void one_hot(const ConstTensorView& indices, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  const Indices values(indices);
  std::memset(out.bytes(), 0, out.nbytes());
  const std::int64_t depth = out.shape().back();
  visit_dtype(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* y = out.data<T>();
    for (std::int64_t i = 0, n = static_cast<std::int64_t>(indices.size()); i < n; ++i)
      if (values[i] >= 0 && values[i] < depth) y[i * depth + values[i]] = T(1);
  });
}

}  // namespace plimsoll::internal
