#include "plimsoll/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

void multiply(const TestTensor& a, const TestTensor& b, TestTensor& out, MatmulFlags flags) {
  const std::size_t bytes = matmul_scratch_bytes(a.shape(), b.shape(), a.dtype(), flags);
  std::vector<Line> scratch(bytes / 64 + 1);
  matmul(a.view(), b.view(), out.view(), flags, {scratch.data()->bytes, bytes});
}

template <class T>
void expect_product(std::int64_t m, std::int64_t n, std::int64_t k, MatmulFlags flags) {
  const TestTensor a = awkward<T>(flags.transpose_a ? Shape{k, m} : Shape{m, k}, false);
  const TestTensor b = awkward<T>(flags.transpose_b ? Shape{n, k} : Shape{k, n}, false, 5);
  TestTensor out = awkward<T>({m, n}, false);
  const TestTensor before = out;
  multiply(a, b, out, flags);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = flags.accumulate ? before.at(static_cast<std::size_t>(i * n + j)) : 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += a.at(static_cast<std::size_t>(flags.transpose_a ? p * m + i : i * k + p)) *
               b.at(static_cast<std::size_t>(flags.transpose_b ? j * k + p : p * n + j));
      ASSERT_EQ(out.at(static_cast<std::size_t>(i * n + j)), sum)  // Exact: multiples of 1/16 below 2^20.
          << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
}

TEST(Matmul, MatchesTheDefinitionForAllShapesAndFlags) {
  const std::int64_t sizes[][3] = {{1, 1, 1},   {6, 16, 4},   {7, 17, 5},     {13, 33, 300}, {73, 40, 65},
                                   {145, 3, 9}, {2, 2100, 3}, {100, 70, 513}, {0, 3, 4},     {3, 4, 0}};
  for (const auto& [m, n, k] : sizes)
    for (int bits = 0; bits < 8; ++bits) {
      const MatmulFlags flags = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
      expect_product<float>(m, n, k, flags);
      expect_product<double>(m, n, k, flags);
    }
}

TEST(Matmul, BatchesBroadcast) {
  const TestTensor a = awkward<float>({3, 1, 4, 5}, false), b = awkward<float>({2, 5, 6}, false);
  TestTensor out(f32, {3, 2, 4, 6});
  multiply(a, b, out, {});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t column = i % 6, row = i / 6 % 4, second = i / 24 % 2, first = i / 48;
    double sum = 0;
    for (std::size_t p = 0; p < 5; ++p) sum += a.at(first * 20 + row * 5 + p) * b.at(second * 30 + p * 6 + column);
    ASSERT_EQ(out.at(i), sum) << i;
  }
}

TEST(Matmul, NaNAndInfinityStayInTheirRowsAndColumns) {
  TestTensor a = TestTensor::from<float>({8, 8}, [](std::int64_t i) { return i == 9 ? NAN : 1.f; });
  TestTensor b = TestTensor::from<float>({8, 8}, [](std::int64_t i) { return i == 2 ? INFINITY : 1.f; });
  TestTensor out(f32, {8, 8});
  multiply(a, b, out, {});
  for (std::size_t i = 0; i < 64; ++i) {
    if (i / 8 == 1)
      EXPECT_TRUE(std::isnan(out.at(i)));
    else
      EXPECT_EQ(out.at(i), i % 8 == 2 ? INFINITY : 8.f);
  }
}

TEST(Matmul, ResultsDoNotDependOnTheNumberOfThreads) {
  const TestTensor a = TestTensor::from<float>({300, 310}, [](std::int64_t i) { return 1.f / float(i + 1); });
  const TestTensor b = TestTensor::from<float>({310, 290}, [](std::int64_t i) { return 1.f / float(i % 77 + 1); });
  TestTensor one(f32, {300, 290}), many = one;
  const int threads = num_threads();
  set_num_threads(1);
  multiply(a, b, one, {});
  set_num_threads(3);
  multiply(a, b, many, {});
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(one.data<float>(), many.data<float>(), one.size() * 4), 0);
}

}  // namespace
}  // namespace plimsoll
