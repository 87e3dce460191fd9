#include "plimsoll/kernels/internal/matmul_halves.h"

#include <algorithm>

#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kRows = 512, kColumns = 1024;  // Per part of the result.
constexpr std::int64_t kConvertElements = 1 << 15;    // Per piece of conversion.

std::int64_t rows_of(const MatmulProduct& x) noexcept { return std::min(x.m, kRows); }
std::int64_t columns_of(const MatmulProduct& x) noexcept { return round_up(std::min(x.n, kColumns), 16); }
std::size_t sum_bytes(const MatmulProduct& x) noexcept {
  return static_cast<std::size_t>(rows_of(x) * columns_of(x) * 4);
}

// Between a part of the result and its sums: from halves to f32, or back.
void convert_rows(Loop loop, const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                  std::int64_t rows, std::int64_t columns) noexcept {
  parallel_for(rows, std::max<std::int64_t>(1, kConvertElements / columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const void* row = from + i * from_step;
      loop(&row, to + i * to_step, columns);
    }
  });
}

}  // namespace

std::size_t halves_bytes(const MatmulProduct& product) noexcept {
  MatmulProduct part = product;
  part.m = std::min(part.m, kRows);
  part.n = std::min(part.n, kColumns);
  return sum_bytes(product) + part.packed_bytes();
}

void multiply_halves(const MatmulProduct& x, std::byte* scratch) noexcept {
  const bool is_f16 = x.source == f16;
  const std::int64_t step = columns_of(x);
  for (std::int64_t i = 0; i < x.m; i += kRows)
    for (std::int64_t j = 0; j < x.n; j += kColumns) {
      MatmulProduct part = x;
      part.m = std::min(kRows, x.m - i);
      part.n = std::min(kColumns, x.n - j);
      part.a += 2 * i * x.a_row;
      part.b += 2 * j * x.b_column;
      part.c = scratch;
      part.c_row = step;
      std::byte* out = x.c + 2 * (i * x.c_row + j);
      if (x.accumulate)
        convert_rows(is_f16 ? loops().f16_to_f32 : loops().bf16_to_f32, out, 2 * x.c_row, scratch, 4 * step, part.m,
                     part.n);
      part.multiply_packed(scratch + sum_bytes(x));
      convert_rows(is_f16 ? loops().f32_to_f16 : loops().f32_to_bf16, scratch, 4 * step, out, 2 * x.c_row, part.m,
                   part.n);
    }
}

}  // namespace plimsoll::internal
