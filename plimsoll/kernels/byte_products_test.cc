#include "plimsoll/kernels/byte_products.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/byte_loops.h"
#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

TestTensor number(std::int32_t value) {
  return TestTensor::from<std::int32_t>({1}, [&](std::int64_t) { return value; });
}
TestTensor scale(float value) {
  return TestTensor::from<float>({1}, [&](std::int64_t) { return value; });
}

struct Problem {
  ByteWindow window;
  TestTensor x, w, w_zero, sums;
  TestTensor x_zero = number(7);

  template <class X, class W>
  static Problem make(const Shape& x, const Shape& w, const Shape& y, const ByteWindow& window) {
    const auto byte = [](std::int64_t i) { return (i * 7919 + i / 3 * 31) % 256; };
    return {window, TestTensor::from<X>(x, byte), TestTensor::from<W>(w, [&](std::int64_t i) { return byte(i + 5); }),
            TestTensor::from<std::int32_t>({w[4]}, [](std::int64_t i) { return i % 11 - 3; }), TestTensor(i32, y)};
  }
  void run() { byte_convolution(window, {x.view(), w.view(), x_zero.view(), w_zero.view()}, sums.view()); }

  // By the definition.
  double expected(std::size_t at) const {
    const Shape &xs = x.shape(), &ws = w.shape(), &ys = sums.shape();
    auto rest = static_cast<std::int64_t>(at);
    const std::int64_t out = rest % ys[4];
    rest /= ys[4];
    std::int64_t place[3];
    for (std::size_t axis = 3; axis-- > 0;) place[axis] = rest % ys[axis + 1], rest /= ys[axis + 1];
    const std::int64_t group = out / (ys[4] / window.groups);
    double sum = 0;
    for (std::int64_t i = 0; i < ws[0]; ++i)
      for (std::int64_t j = 0; j < ws[1]; ++j)
        for (std::int64_t k = 0; k < ws[2]; ++k) {
          const std::int64_t tap[3] = {i, j, k};
          std::int64_t from = rest, inside = 1;
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::int64_t here =
                place[axis] * window.stride[axis] + tap[axis] * window.dilation[axis] - window.before[axis];
            if (here < 0 || here >= xs[axis + 1]) inside = 0;
            from = from * xs[axis + 1] + here;
          }
          for (std::int64_t c = 0; inside && c < ws[3]; ++c)
            sum += (x.at(static_cast<std::size_t>(from * xs[4] + group * ws[3] + c)) - 7) *
                   (w.at(static_cast<std::size_t>((((i * ws[1] + j) * ws[2] + k) * ws[3] + c) * ws[4] + out)) -
                    w_zero.at(static_cast<std::size_t>(out)));
        }
    return sum;
  }
};

void expect_definition(Problem p) {
  p.run();
  for (std::size_t i = 0; i < p.sums.size(); ++i) ASSERT_EQ(p.sums.at(i), p.expected(i)) << p.w.shape() << " at " << i;
}

TEST(ByteConvolution, SumsAreExact) {
  using U8 = std::uint8_t;
  using I8 = std::int8_t;
  expect_definition(Problem::make<U8, I8>({5, 1, 1, 1, 301}, {1, 1, 1, 301, 70}, {5, 1, 1, 1, 70}, {}));
  expect_definition(Problem::make<I8, U8>({2, 1, 5, 6, 3}, {1, 3, 3, 3, 17}, {2, 1, 3, 3, 17},
                                          {.stride = {1, 2, 2}, .before = {0, 1, 1}}));
  expect_definition(
      Problem::make<U8, U8>({1, 4, 5, 5, 8}, {2, 3, 2, 4, 6}, {1, 3, 1, 4, 6}, {.dilation = {1, 2, 1}, .groups = 2}));
  expect_definition(
      Problem::make<I8, I8>({2, 1, 4, 4, 70}, {1, 3, 3, 1, 70}, {2, 1, 4, 4, 70}, {.before = {0, 1, 1}, .groups = 70}));
}

TEST(ByteConvolution, EveryInstructionSetSumsTheSame) {
  std::vector<std::int16_t> a(kByteRows * kByteDepth);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::int16_t>(static_cast<int>(i * 97 % 511) - 255);
  std::vector<std::int8_t> w(77 * 100);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::int8_t>(i * 61);
  std::vector<std::int32_t> first;
  for (const ByteLoops* loops : every_byte_loops()) {
    std::vector<std::int32_t> sums(kByteRows * kByteColumns, 3);
    loops->i8.multiply(a.data(), 77, w.data(), 100, 61, sums.data());
    if (first.empty()) first = sums;
    EXPECT_EQ(sums, first);
  }
}

TEST(ByteConvolution, RoundsHalvesToEvenAndHoldsResultsToTheDtype) {
  const TestTensor x = TestTensor::from<std::uint8_t>({5, 1, 1, 1, 1}, [](std::int64_t i) { return i * 60 + 1; });
  const TestTensor w = TestTensor::from<std::int8_t>({1, 1, 1, 1, 1}, [](std::int64_t) { return 1; });
  const TestTensor zero = number(0), one = scale(1), two = scale(2), shift = number(3);
  TestTensor y(i8, {5, 1, 1, 1, 1});
  byte_convolution({}, {x.view(), w.view(), zero.view(), zero.view(), one.view(), one.view(), two.view(), shift.view()},
                   y.view());
  const double wanted[] = {3, 33, 63, 93, 123};  // 0.5, 30.5, 60.5, ...: to even, and 3 more.
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(y.at(i), wanted[i]);
  byte_convolution({}, {x.view(), w.view(), zero.view(), zero.view(), one.view(), one.view(), one.view(), shift.view()},
                   y.view());
  EXPECT_EQ(y.at(0), 4);
  EXPECT_EQ(y.at(4), 127);
}

TEST(ByteConvolution, TheSameForOneAndTwoThreads) {
  Problem one = Problem::make<std::uint8_t, std::int8_t>({2, 1, 30, 30, 16}, {1, 3, 3, 16, 80}, {2, 1, 28, 28, 80}, {});
  Problem two = one;
  const int threads = num_threads();
  set_num_threads(1);
  one.run();
  set_num_threads(2);
  two.run();
  set_num_threads(threads);
  EXPECT_EQ(std::memcmp(one.sums.view().bytes(), two.sums.view().bytes(), one.sums.size() * 4), 0);
}

}  // namespace
}  // namespace plimsoll
