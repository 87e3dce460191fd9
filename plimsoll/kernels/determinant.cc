#include "plimsoll/kernels/determinant.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"

namespace plimsoll::internal {
namespace {

// Of the n x n matrix a, which it destroys.
double eliminate(double* a, std::int64_t n) noexcept {
  double result = 1;
  for (std::int64_t step = 0; step < n; ++step) {
    std::int64_t pivot = step;
    for (std::int64_t row = step + 1; row < n; ++row)
      if (std::fabs(a[row * n + step]) > std::fabs(a[pivot * n + step])) pivot = row;
    if (pivot != step) {
      std::swap_ranges(a + step * n, a + (step + 1) * n, a + pivot * n);
      result = -result;
    }
    const double head = a[step * n + step];
    result *= head;
    if (head == 0) return 0;
    for (std::int64_t row = step + 1; row < n; ++row) {
      const double factor = a[row * n + step] / head;
      for (std::int64_t column = step + 1; column < n; ++column) a[row * n + column] -= factor * a[step * n + column];
    }
  }
  return result;
}

template <class T>
void run(const ConstTensorView& x, const TensorView& y, double* scratch) noexcept {
  const std::int64_t n = x.shape().back(), count = static_cast<std::int64_t>(y.size());
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(x.data<T>() + i * n * n, n * n, scratch);
    y.data<T>()[i] = static_cast<T>(eliminate(scratch, n));
  }
}

}  // namespace

std::size_t determinant_scratch_bytes(const Shape& x) noexcept {
  const auto n = static_cast<std::size_t>(x.back());
  return round_up(n * n * sizeof(double), 64);
}

void determinant(const ConstTensorView& x, const TensorView& y, std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(scratch.size() >= determinant_scratch_bytes(x.shape()));
  auto* memory = reinterpret_cast<double*>(scratch.data());
  if (x.dtype() == f32)
    run<float>(x, y, memory);
  else
    run<double>(x, y, memory);
}

}  // namespace plimsoll::internal
