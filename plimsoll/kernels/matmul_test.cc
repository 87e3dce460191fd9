#include "plimsoll/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cstring>
#include <type_traits>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

class Scratch {
 public:
  Scratch(const TestTensor& a, const TestTensor& b, MatmulFlags flags)
      : bytes_(matmul_scratch_bytes(a.shape(), b.shape(), a.dtype(), flags)), lines_(bytes_ / 64 + 1) {}
  std::span<std::byte> span() { return {lines_.data()->bytes, bytes_}; }

 private:
  std::size_t bytes_;
  std::vector<Line> lines_;
};

void multiply(const TestTensor& a, const TestTensor& b, TestTensor& out, MatmulFlags flags,
              const MatmulEpilogue& epilogue = {}) {
  matmul(a.view(), b.view(), out.view(), flags, Scratch(a, b, flags).span(), epilogue);
}

bool same_bytes(const TestTensor& a, const TestTensor& b) {
  return std::memcmp(a.view().bytes(), b.view().bytes(), a.view().nbytes()) == 0;
}

// Restores the number of threads.
class Threads {
 public:
  explicit Threads(int threads) { set_num_threads(threads); }
  ~Threads() { set_num_threads(before_); }

 private:
  const int before_ = num_threads();
};

// Sums of multiples of 1/16 below 2^20, or of integers: exact in f32, rounded once for half types.
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
        sum += static_cast<double>(a.data<T>()[flags.transpose_a ? p * m + i : i * k + p]) *
               static_cast<double>(b.data<T>()[flags.transpose_b ? j * k + p : p * n + j]);
      ASSERT_EQ(out.at(static_cast<std::size_t>(i * n + j)), static_cast<double>(static_cast<T>(sum)))
          << to_string(kDTypeOf<T>) << " " << m << "x" << n << "x" << k << " at " << i << ", " << j;
    }
}

template <class T>
class MatmulOf : public testing::Test {};
using Supported = testing::Types<float, double, float16, bfloat16, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(MatmulOf, Supported);

TYPED_TEST(MatmulOf, MatchesTheDefinitionForAllShapesAndFlags) {
  const std::int64_t sizes[][3] = {{1, 1, 1},     {6, 16, 4},   {7, 17, 5},  {8, 8, 8},    {24, 24, 24},
                                   {13, 33, 300}, {73, 40, 65}, {145, 3, 9}, {2, 2100, 3}, {100, 70, 513},
                                   {5, 1, 600},   {3, 47, 260}, {0, 3, 4},   {3, 0, 4},    {3, 4, 0}};
  for (const auto& [m, n, k] : sizes)
    for (int bits = 0; bits < 8; ++bits)
      expect_product<TypeParam>(m, n, k, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

// Every width and height of tile, in place and packed.
TYPED_TEST(MatmulOf, MatchesTheDefinitionForEveryRemainder) {
  for (std::int64_t i = 1; i <= 34; ++i)
    expect_product<TypeParam>(i, i % 2 ? i : 35 - i, 3 + i % 3, {.transpose_b = i % 5 == 0});
  if constexpr (std::is_floating_point_v<TypeParam>)
    for (std::int64_t i = 0; i < 13; ++i)
      expect_product<TypeParam>(180 + i, 155 + 3 * i, 161, {.transpose_a = i % 2 == 0});
}

TYPED_TEST(MatmulOf, LargeProductsMatchTheDefinition) {
  if constexpr (std::is_floating_point_v<TypeParam>) {  // Several parts of columns, of rows, of the inner axis.
    expect_product<TypeParam>(20, 4200, 300, {});
    expect_product<TypeParam>(3200, 20, 270, {.transpose_b = true});
  } else {
    expect_product<TypeParam>(530, 20, 20, {});
    expect_product<TypeParam>(10, 1040, 20, {.accumulate = true});
  }
}

TYPED_TEST(MatmulOf, BatchesBroadcast) {
  const TestTensor a = awkward<TypeParam>({3, 1, 4, 5}, false), b = awkward<TypeParam>({2, 5, 6}, false);
  TestTensor out(kDTypeOf<TypeParam>, {3, 2, 4, 6});
  multiply(a, b, out, {});
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t column = i % 6, row = i / 6 % 4, second = i / 24 % 2, first = i / 48;
    double sum = 0;
    for (std::size_t p = 0; p < 5; ++p) sum += a.at(first * 20 + row * 5 + p) * b.at(second * 30 + p * 6 + column);
    ASSERT_EQ(out.at(i), static_cast<double>(static_cast<TypeParam>(sum))) << i;
  }
}

TYPED_TEST(MatmulOf, ABatchIsTheProductsOneByOne) {
  const TestTensor a = awkward<TypeParam>({9, 40, 50}, false), b = awkward<TypeParam>({9, 50, 30}, false, 3);
  TestTensor all(kDTypeOf<TypeParam>, {9, 40, 30});
  multiply(a, b, all, {});
  const std::size_t bytes = matmul_scratch_bytes({40, 50}, {50, 30}, kDTypeOf<TypeParam>, {});
  std::vector<Line> scratch(bytes / 64 + 1);
  for (std::int64_t i = 0; i < 9; ++i) {
    TestTensor one(kDTypeOf<TypeParam>, {40, 30});
    matmul(a.view().rows(i, i + 1).reshaped({40, 50}), b.view().rows(i, i + 1).reshaped({50, 30}), one.view(), {},
           {scratch.data()->bytes, bytes});
    EXPECT_EQ(std::memcmp(all.view().rows(i, i + 1).bytes(), one.view().bytes(), one.view().nbytes()), 0) << i;
  }
}

template <class T>
TestTensor uneven(const Shape& shape, std::int64_t period) {
  return TestTensor::from<T>(shape, [=](std::int64_t i) {
    if constexpr (std::is_integral_v<T>)
      return i * 2654435761 % 1000003;  // Sums wrap in i32.
    else
      return 1.f / float(i % period + 1) - 0.1f;
  });
}

TYPED_TEST(MatmulOf, ResultsDoNotDependOnTheNumberOfThreads) {
  const Shape shapes[][3] = {{{300, 310}, {310, 290}, {300, 290}},        // Packed.
                             {{100, 90}, {90, 110}, {100, 110}},          // In place, several items.
                             {{40, 33, 20}, {40, 20, 35}, {40, 33, 35}},  // Batches.
                             {{3, 200, 170}, {170, 190}, {3, 200, 190}}};
  for (const auto& [left, right, result] : shapes) {
    const TestTensor a = uneven<TypeParam>(left, 1009), b = uneven<TypeParam>(right, 77);
    TestTensor one(kDTypeOf<TypeParam>, result), two = one, three = one;
    for (auto& [threads, out] : {std::pair<int, TestTensor*>{1, &one}, {2, &two}, {3, &three}}) {
      const Threads use(threads);
      multiply(a, b, *out, {});
    }
    EXPECT_TRUE(same_bytes(one, two)) << left;
    EXPECT_TRUE(same_bytes(one, three)) << left;
  }
}

TYPED_TEST(MatmulOf, TheEpilogueIsBitForBitWhatSeparateCallsDo) {
  const std::int64_t sizes[][3] = {{7, 17, 5}, {100, 90, 64}, {200, 170, 300}, {5, 3, 0}, {3, 300, 70}};
  const DType dtype = kDTypeOf<TypeParam>;
  for (const auto& [m, n, k] : sizes) {
    const TestTensor a = uneven<TypeParam>({m, k}, 101), b = uneven<TypeParam>({k, n}, 77),
                     row = uneven<TypeParam>({n}, 13);
    const ConstTensorView bias = row.view();
    for (const auto activation :
         {std::optional<UnaryOp>(), std::optional(UnaryOp::relu), std::optional(UnaryOp::relu6),
          std::optional(UnaryOp::gelu), std::optional(UnaryOp::tanh), std::optional(UnaryOp::hard_sigmoid)})
      for (const bool has_bias : {false, true})
        for (const bool accumulate : {false, true}) {
          if (activation && !is_supported(*activation, dtype)) continue;
          TestTensor fused = uneven<TypeParam>({m, n}, 7), apart = fused;
          multiply(a, b, fused, {.accumulate = accumulate}, {has_bias ? &bias : nullptr, activation});
          multiply(a, b, apart, {.accumulate = accumulate});
          if (has_bias) binary(BinaryOp::add, apart.view(), bias, apart.view());
          if (activation) unary(*activation, apart.view(), apart.view());
          EXPECT_TRUE(same_bytes(fused, apart))
              << m << "x" << n << "x" << k << (activation ? op_name(*activation) : "");
        }
  }
}

TYPED_TEST(MatmulOf, MakesNoHeapAllocation) {
  const Threads use(2);
  for (const std::int64_t n : {8, 100, 300}) {
    const TestTensor a = awkward<TypeParam>({2, n, n}, false), b = awkward<TypeParam>({2, n, n}, false),
                     row = awkward<TypeParam>({n}, false);
    TestTensor out(kDTypeOf<TypeParam>, {2, n, n});
    Scratch scratch(a, b, {.transpose_b = true});
    const ConstTensorView left = a.view(), right = b.view(), bias = row.view();
    const TensorView result = out.view();
    const auto run = [&] {
      matmul(left, right, result, {.transpose_b = true}, scratch.span(), {&bias, UnaryOp::relu});
    };
    run();  // Starts the threads.
    const std::size_t before = heap_allocations();
    run();
    EXPECT_EQ(heap_allocations(), before) << n;
  }
}

TEST(Matmul, HalvesAreRoundedOnceAtTheEnd) {
  // 2048 + 1 is not an f16; 2048 + 1 + 1, rounded at each step, would stay 2048.
  const TestTensor a = TestTensor::from<float16>({1, 3}, [](std::int64_t i) { return i == 0 ? 2048.f : 1.f; });
  const TestTensor b = TestTensor::from<float16>({3, 1}, [](std::int64_t) { return 1.f; });
  TestTensor out(f16, {1, 1});
  multiply(a, b, out, {});
  EXPECT_EQ(out.at(0), 2050);
}

TEST(Matmul, IntegersWrap) {
  const TestTensor a = TestTensor::from<std::int32_t>({1, 2}, [](std::int64_t) { return 1 << 30; });
  const TestTensor b = TestTensor::from<std::int32_t>({2, 1}, [](std::int64_t i) { return i == 0 ? 2 : 1; });
  TestTensor out(i32, {1, 1});
  multiply(a, b, out, {});
  EXPECT_EQ(out.at(0), static_cast<double>(static_cast<std::int32_t>(3221225472u)));
}

TEST(Matmul, SaysWhichDTypesItTakes) {
  for (const DType dtype : {f16, bf16, f32, f64, i32, i64}) EXPECT_TRUE(is_matmul_supported(dtype)) << dtype;
  for (const DType dtype : {boolean, u8, i8, i16}) EXPECT_FALSE(is_matmul_supported(dtype)) << dtype;
}

TEST(Matmul, ScratchHasABound) {
  for (const std::int64_t n : {100, 1000, 3000, 100'000})
    for (const std::int64_t k : {1, 100, 300, 100'000})
      for (const DType dtype : {f16, f32, f64})
        EXPECT_LE(matmul_scratch_bytes({n, k}, {k, n}, dtype, {}), is_half(dtype) ? 5u * 1153434 : 3670016u + 256);
}

TEST(Matmul, NaNAndInfinityStayInTheirRowsAndColumns) {
  for (const std::int64_t n : {8, 200}) {  // In place and packed.
    TestTensor a = TestTensor::from<float>({n, n}, [=](std::int64_t i) { return i == n + 1 ? NAN : 1.f; });
    TestTensor b = TestTensor::from<float>({n, n}, [](std::int64_t i) { return i == 2 ? INFINITY : 1.f; });
    TestTensor out(f32, {n, n});
    multiply(a, b, out, {});
    for (std::int64_t i = 0; i < n * n; ++i) {
      const double value = out.at(static_cast<std::size_t>(i));
      if (i / n == 1)
        EXPECT_TRUE(std::isnan(value));
      else
        EXPECT_EQ(value, i % n == 2 ? INFINITY : static_cast<double>(n));
    }
  }
}

}  // namespace
}  // namespace plimsoll
