#include "plimsoll/kernels/scatter_reduce.h"

#include <type_traits>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

template <class T>
T product(T a, T b) noexcept {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
  else
    return a * b;
}

template <class T, class Index, class F>
void combine(const T* updates, const Index* indices, std::int64_t count, std::int64_t width, T* out, F f) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    T* row = out + static_cast<std::int64_t>(indices[i]) * width;
    for (std::int64_t j = 0; j < width; ++j) row[j] = f(row[j], updates[i * width + j]);
  }
}

template <class T, class Index>
void run(ScatterReduction reduction, const T* updates, const Index* indices, std::int64_t count, std::int64_t width,
         T* out) noexcept {
  // NaN wins, as in maximum and minimum.
  if (reduction == ScatterReduction::multiply)
    combine(updates, indices, count, width, out, [](T a, T b) { return product(a, b); });
  else if (reduction == ScatterReduction::maximum)
    combine(updates, indices, count, width, out, [](T a, T b) { return b > a || b != b ? b : a; });
  else
    combine(updates, indices, count, width, out, [](T a, T b) { return b < a || b != b ? b : a; });
}

template <class T>
void run_rows(ScatterReduction reduction, const ConstTensorView& updates, const ConstTensorView& indices,
              const TensorView& out) noexcept {
  const auto count = static_cast<std::int64_t>(indices.size());
  const std::int64_t width = count == 0 ? 0 : static_cast<std::int64_t>(updates.size()) / count;
  if (indices.dtype() == i32)
    run(reduction, updates.data<T>(), indices.data<std::int32_t>(), count, width, out.data<T>());
  else
    run(reduction, updates.data<T>(), indices.data<std::int64_t>(), count, width, out.data<T>());
}

}  // namespace

void scatter_reduce(ScatterReduction reduction, const ConstTensorView& updates, const ConstTensorView& indices,
                    const TensorView& out) noexcept {
  if (indices.size() == 0) return;
  if (out.dtype() == f32) return run_rows<float>(reduction, updates, indices, out);
  if (out.dtype() == f64) return run_rows<double>(reduction, updates, indices, out);
  if (out.dtype() == i32) return run_rows<std::int32_t>(reduction, updates, indices, out);
  PLIMSOLL_CHECK(out.dtype() == i64);
  run_rows<std::int64_t>(reduction, updates, indices, out);
}

}  // namespace plimsoll::internal
