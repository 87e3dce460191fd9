#include "plimsoll/kernels/pooling.h"

#include <gtest/gtest.h>

#include <limits>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/convolution_testing.h"

namespace plimsoll {
namespace {

struct Case {
  std::int64_t batch, rows, columns, channels;
  Pooling pooling;

  Shape x() const { return {batch, rows, columns, channels}; }
  Shape y() const {
    return {batch, pooling.window.positions_down(rows, pooling.rows),
            pooling.window.positions_across(columns, pooling.columns), channels};
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.x() << " -> " << c.y() << " window " << c.pooling.rows << ", " << c.pooling.columns;
}

const Case kCases[] = {
    {1, 1, 1, 1, {1, 1, {}}},
    {2, 4, 6, 3, {2, 2, {2, 2}}},
    {3, 7, 5, 6, {2, 2, {2, 2}}},                        // Channels that fill no vector.
    {2, 28, 28, 6, {2, 2, {2, 2}}},                      //
    {2, 11, 12, 13, {2, 3, {3, 4}}},                     // Windows apart, rest in rows and columns.
    {1, 9, 9, 1, {3, 3, {3, 3}}},                        //
    {1, 2, 3000, 7, {2, 2, {2, 2}}},                     // The same, cut into segments.
    {2, 9, 8, 33, {3, 3, {2, 2, 1, 1, 0, 1, 1, 0}}},     // Overlapping, padded on two sides.
    {2, 9, 8, 5, {3, 2, {1, 1, 2, 3, 2, 2, 1, 1}}},      // Dilated.
    {1, 8, 9, 64, {1, 2, {1, 3}}},                       // One bit; stride beyond the window.
    {1, 20, 20, 3, {5, 5, {3, 3}}},                      // Eight bits.
    {1, 30, 31, 2, {17, 18, {2, 1, 1, 1, 3, 4, 5, 6}}},  // 32 bits.
    {2, 3, 3, 4, {2, 2, {1, 1, 1, 1, 3, 3, 3, 3}}},      // Windows of padding alone.
    {2, 4, 4, 2100, {2, 2, {2, 2}}},                     // More channels than a segment.
    {1, 2, 1000, 5, {2, 3, {1, 2}}},                     // More columns than a segment.
    {0, 4, 4, 3, {2, 2, {2, 2}}},
    {2, 1, 1, 3, {2, 2, {2, 2}}},  // Nothing out.
};

// Calls visit(index into y, index into x) for each element of each window, in order.
template <class F>
void each_element(const Case& c, F visit) {
  const Shape y = c.y();
  const Window& w = c.pooling.window;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t i = 0; i < y[1]; ++i)
      for (std::int64_t j = 0; j < y[2]; ++j)
        for (std::int64_t k = 0; k < c.pooling.rows; ++k)
          for (std::int64_t l = 0; l < c.pooling.columns; ++l) {
            const std::int64_t row = i * w.row_stride + k * w.row_dilation - w.top;
            const std::int64_t column = j * w.column_stride + l * w.column_dilation - w.left;
            if (row < 0 || row >= c.rows || column < 0 || column >= c.columns) continue;
            for (std::int64_t p = 0; p < c.channels; ++p)
              visit(static_cast<std::size_t>(((n * y[1] + i) * y[2] + j) * c.channels + p),
                    static_cast<std::size_t>(((n * c.rows + row) * c.columns + column) * c.channels + p));
          }
}

// Few different values, so that there are ties.
template <class T>
TestTensor coarse(const Shape& shape, std::uint64_t seed) {
  TestTensor x = scattered<T>(shape, seed);
  for (std::size_t i = 0; i < x.size(); ++i) x.data<T>()[i] = std::round(x.data<T>()[i] * T(4));
  return x;
}

class Poolings : public testing::TestWithParam<Case> {
 protected:
  template <class T>
  void expect_max() {
    const Case& c = GetParam();
    const TestTensor x = coarse<T>(c.x(), 1), dy = scattered<T>(c.y(), 2);
    TestTensor y = scattered<T>(c.y(), 3), dx = scattered<T>(c.x(), 3), again = y;
    const std::size_t bytes = max_pool_positions_bytes(c.y(), c.pooling);
    TestScratch positions(bytes);
    max_pool(x.view(), y.view(), c.pooling, std::span<std::byte>(positions).data());
    max_pool(x.view(), again.view(), c.pooling, nullptr);
    max_pool_gradient(dy.view(), std::span<std::byte>(positions).data(), dx.view(), c.pooling);
    EXPECT_TRUE(positions.is_kept());
    EXPECT_TRUE(same_bits(y, again));
    std::vector<double> exact(y.size(), -std::numeric_limits<double>::infinity()), gradient(x.size());
    std::vector<std::size_t> at(y.size(), x.size());
    each_element(c, [&](std::size_t o, std::size_t i) {
      if (at[o] != x.size() && !(x.at(i) > exact[o])) return;
      exact[o] = x.at(i);
      at[o] = i;
    });
    for (std::size_t o = 0; o < y.size(); ++o) {
      ASSERT_EQ(y.at(o), exact[o]) << o;
      if (at[o] != x.size()) gradient[at[o]] += dy.at(o);
    }
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(dx.at(i), gradient[i], 1e-5) << i;
  }

  template <class T>
  void expect_average() {
    const Case& c = GetParam();
    const TestTensor x = scattered<T>(c.x(), 1), dy = scattered<T>(c.y(), 2);
    TestTensor y = scattered<T>(c.y(), 3), dx = scattered<T>(c.x(), 3);
    average_pool(x.view(), y.view(), c.pooling);
    average_pool_gradient(dy.view(), dx.view(), c.pooling);
    std::vector<double> sum(y.size()), count(y.size()), gradient(x.size());
    each_element(c, [&](std::size_t o, std::size_t i) { sum[o] += x.at(i), count[o] += 1; });
    each_element(c, [&](std::size_t o, std::size_t i) { gradient[i] += dy.at(o) / count[o]; });
    for (std::size_t o = 0; o < y.size(); ++o) ASSERT_NEAR(y.at(o), count[o] == 0 ? 0 : sum[o] / count[o], 1e-5) << o;
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(dx.at(i), gradient[i], 1e-5) << i;
  }
};

TEST_P(Poolings, MaximumAndItsGradientFollowTheFirstLargest) {
  expect_max<float>();
  expect_max<double>();
}

TEST_P(Poolings, AverageCountsNoPadding) {
  expect_average<float>();
  expect_average<double>();
}

INSTANTIATE_TEST_SUITE_P(, Poolings, testing::ValuesIn(kCases));

TEST(Pooling, PositionsTakeAsFewBitsAsTheWindowNeeds) {
  const Shape y = {2, 4, 4, 8};  // 256 outputs.
  EXPECT_EQ(max_pool_positions_bytes(y, {1, 2, {}}), 32u);
  EXPECT_EQ(max_pool_positions_bytes(y, {2, 2, {}}), 64u);
  EXPECT_EQ(max_pool_positions_bytes(y, {3, 3, {}}), 128u);
  EXPECT_EQ(max_pool_positions_bytes(y, {16, 16, {}}), 256u);
  EXPECT_EQ(max_pool_positions_bytes(y, {16, 17, {}}), 1024u);
}

TEST(Pooling, NaNIsTheMaximum) {
  TestTensor x = TestTensor::from<float>({1, 2, 2, 9}, [](std::int64_t i) { return i == 13 || i == 31 ? NAN : 1.f; });
  TestTensor y(f32, {1, 1, 1, 9}), dx(f32, x.shape());
  TestTensor dy = TestTensor::from<float>(y.shape(), [](std::int64_t) { return 1.f; });
  TestScratch positions(max_pool_positions_bytes(y.shape(), {2, 2, {}}));
  max_pool(x.view(), y.view(), {2, 2, {}}, std::span<std::byte>(positions).data());
  for (std::size_t c = 0; c < 9; ++c) EXPECT_EQ(std::isnan(y.at(c)), c == 4) << c;
  max_pool_gradient(dy.view(), std::span<std::byte>(positions).data(), dx.view(), {2, 2, {}});
  for (std::size_t i = 0; i < 36; ++i) EXPECT_EQ(dx.at(i), (i < 9 && i != 4) || i == 13 ? 1.f : 0.f) << i;
}

TEST(Pooling, AllocatesNothingAndDoesNotDependOnTheNumberOfThreads) {
  const Case c = {16, 31, 33, 7, {3, 3, {2, 2, 1, 1, 1, 1, 1, 1}}};
  const TestTensor x = coarse<float>(c.x(), 1), dy = scattered<float>(c.y(), 2);
  TestTensor results[3][4] = {{{f32, c.y()}, {f32, c.x()}, {f32, c.y()}, {f32, c.x()}},
                              {{f32, c.y()}, {f32, c.x()}, {f32, c.y()}, {f32, c.x()}},
                              {{f32, c.y()}, {f32, c.x()}, {f32, c.y()}, {f32, c.x()}}};
  const int threads = num_threads();
  for (int round = 0; round < 3; ++round) {
    set_num_threads(round == 0 ? 1 : 2);
    TestScratch positions(max_pool_positions_bytes(c.y(), c.pooling));
    std::byte* const at = std::span<std::byte>(positions).data();
    const TensorView y = results[round][0].view(), dx = results[round][1].view();
    const TensorView mean = results[round][2].view(), dmean = results[round][3].view();
    const std::size_t before = heap_allocations();
    max_pool(x.view(), y, c.pooling, at);
    max_pool_gradient(dy.view(), at, dx, c.pooling);
    average_pool(x.view(), mean, c.pooling);
    average_pool_gradient(dy.view(), dmean, c.pooling);
    if (round == 2) {
      EXPECT_EQ(heap_allocations(), before);  // Round 1 starts threads.
    }
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(results[0][i], results[round][i])) << i;
  }
  set_num_threads(threads);
}

}  // namespace
}  // namespace plimsoll
