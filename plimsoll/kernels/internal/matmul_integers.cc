#include "plimsoll/kernels/internal/matmul_integers.h"

#include <algorithm>

#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr double kChunkWork = 1 << 15;

template <class U>
void multiply_row(const MatmulProduct& x, std::int64_t i) noexcept {
  const U* a = reinterpret_cast<const U*>(x.a) + i * x.a_row;
  const U* b = reinterpret_cast<const U*>(x.b);
  U* c = reinterpret_cast<U*>(x.c) + i * x.c_row;
  if (!x.accumulate) std::fill(c, c + x.n, U(0));
  if (x.b_column == 1) {
    for (std::int64_t p = 0; p < x.k; ++p) {
      const U scale = a[p * x.a_column];
      const U* row = b + p * x.b_row;
      for (std::int64_t j = 0; j < x.n; ++j) c[j] += scale * row[j];
    }
    return;
  }
  for (std::int64_t j = 0; j < x.n; ++j) {
    U sum = 0;
    for (std::int64_t p = 0; p < x.k; ++p) sum += a[p * x.a_column] * b[j * x.b_column + p];
    c[j] += sum;
  }
}

}  // namespace

void multiply_integers(const MatmulProduct& first, std::int64_t batches,
                       FunctionRef<MatmulProduct(std::int64_t batch)> product) noexcept {
  const double row_work = static_cast<double>(first.n) * static_cast<double>(first.k);
  const auto grain = static_cast<std::int64_t>(std::max(1.0, kChunkWork / row_work));
  parallel_for(batches * first.m, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const MatmulProduct x = product(row / first.m);
      if (x.source == i32)
        multiply_row<std::uint32_t>(x, row % first.m);
      else
        multiply_row<std::uint64_t>(x, row % first.m);
    }
  });
}

}  // namespace plimsoll::internal
