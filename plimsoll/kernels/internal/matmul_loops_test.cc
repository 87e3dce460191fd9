#include "plimsoll/kernels/internal/matmul_loops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

template <class T>
const MatmulLoops& loops_of(const MatmulTable& table) {
  return sizeof(T) == 4 ? table.f32 : table.f64;
}

// All the panels of x, whose vector i's element p is x[i * along + p * deep], one after the other.
template <class T>
std::vector<T> packed(const MatmulLoops& loops, bool is_left, const T* x, std::int64_t count, std::int64_t k,
                      std::int64_t along, std::int64_t deep) {
  const std::int64_t most = is_left ? loops.rows : loops.columns;
  std::vector<T> panels(static_cast<std::size_t>((count + most - 1) / most * most * k));
  for (std::int64_t i = 0; i < count; i += most)
    (is_left ? loops.pack_rows : loops.pack_columns)(x + i * along, std::min(most, count - i), k, along, deep,
                                                     panels.data() + i * k);
  return panels;
}

// The four combinations of packed operands and operands in place; the latter may be transposed. Values are exact in
// every order.
template <class T>
void expect_products(const MatmulTable& table, std::int64_t m, std::int64_t n, std::int64_t k) {
  const MatmulLoops& loops = loops_of<T>(table);
  const TestTensor a = awkward<T>({m, k}, false), b = awkward<T>({k, n}, false, 5);
  for (int bits = 0; bits < 32; ++bits) {
    const bool is_a_packed = bits & 1, is_b_packed = bits & 2, is_a_transposed = bits & 4, is_b_transposed = bits & 8;
    const std::int64_t a_row = is_a_transposed ? 1 : k, a_column = is_a_transposed ? m : 1;
    const std::int64_t b_row = is_b_transposed ? 1 : n, b_column = is_b_transposed ? k : 1;
    const std::vector<T> left = packed(loops, true, a.data<T>(), m, k, a_row, a_column);
    const std::vector<T> right = packed(loops, false, b.data<T>(), n, k, b_column, b_row);
    TestTensor c = awkward<T>({m, n + 1}, false);
    const TestTensor before = c;
    MatmulBlock block = {is_a_packed ? left.data() : a.data<T>(),
                         is_b_packed ? right.data() : b.data<T>(),
                         c.data<T>(),
                         m,
                         n,
                         k,
                         is_a_packed,
                         is_b_packed,
                         a_row,
                         a_column,
                         b_row,
                         b_column,
                         n + 1,
                         (bits & 16) != 0};
    loops.multiply(block);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j <= n; ++j) {
        double sum = block.accumulate || j == n ? before.data<T>()[i * (n + 1) + j] : 0;
        for (std::int64_t p = 0; p < k && j < n; ++p)
          sum += double(a.data<T>()[i * a_row + p * a_column]) * double(b.data<T>()[p * b_row + j * b_column]);
        ASSERT_EQ(c.data<T>()[i * (n + 1) + j], sum)
            << m << "x" << n << "x" << k << " way " << bits << " at " << i << ", " << j;
      }
  }
}

// Every instruction set this processor has, so that the slower ones are tested too.
TEST(MatmulLoops, AgreeOnEveryInstructionSet) {
  for (const MatmulTable* table : every_matmul_loops()) {
    for (std::int64_t i = 1; i <= 26; ++i) {
      expect_products<float>(*table, i, 2 * i - 1, 9);
      expect_products<double>(*table, 27 - i, i, 6);
    }
    expect_products<float>(*table, 14, 97, 200);
    expect_products<double>(*table, 29, 50, 131);
  }
}

}  // namespace
}  // namespace plimsoll
