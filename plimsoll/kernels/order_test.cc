#include "plimsoll/kernels/order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/kernels/kernel_testing.h"

namespace plimsoll {
namespace {

template <class F>
void for_every_dtype(F f) {
  for (std::size_t d = 0; d < kNumDTypes; ++d) visit_dtype(static_cast<DType>(d), f);
}

bool less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

// The positions of a row in order.
std::vector<std::size_t> order_of(const TestTensor& x, std::size_t row, std::size_t n, bool descending) {
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const double a = x.at(row * n + i), b = x.at(row * n + j);
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

TEST(Sort, OrdersRowsStablyWithNaNLargest) {
  for_every_dtype([]<class T>(TypeTag<T>) {
    for (const bool descending : {false, true})
      for (const Shape& shape : {Shape{3, 100}, Shape{1}, Shape{0, 4}, Shape{4, 0}}) {
        const TestTensor x = awkward<T>(shape);
        TestTensor values(x.dtype(), shape), indices(i64, shape);
        sort(x.view(), {descending}, values.view(), indices.view());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const auto n = static_cast<std::size_t>(shape.back()), row = i / n;
          const std::size_t expected = order_of(x, row, n, descending)[i % n];
          ASSERT_EQ(indices.at(i), static_cast<double>(expected)) << x.dtype();
          ASSERT_TRUE(same(values.at(i), x.at(row * n + expected)));
        }
      }
  });
}

TEST(TopK, TakesTheLargestInOrder) {
  for_every_dtype([]<class T>(TypeTag<T>) {
    for (const std::int64_t k : {0, 1, 7, 50}) {
      const TestTensor x = awkward<T>({20, 50});
      TestTensor values(x.dtype(), {20, k}), indices(i64, {20, k});
      std::vector<std::int64_t> scratch(top_k_scratch_bytes(x.shape()) / 8);
      top_k(x.view(), k, values.view(), indices.view(), std::as_writable_bytes(std::span(scratch)));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(k), place = i % static_cast<std::size_t>(k);
        const std::size_t expected = order_of(x, row, 50, true)[place];
        ASSERT_EQ(indices.at(i), static_cast<double>(expected)) << x.dtype();
        ASSERT_TRUE(same(values.at(i), x.at(row * 50 + expected)));
      }
    }
  });
}

TEST(Cumsum, RunsAlongAnyAxisInBothDirections) {
  for_every_dtype([]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, bool>)
      for (std::size_t axis = 0; axis < 3; ++axis)
        for (int bits = 0; bits < 4; ++bits) {
          const CumsumFlags flags = {(bits & 1) != 0, (bits & 2) != 0};
          const TestTensor x = TestTensor::from<T>({2, 3, 4}, [](std::int64_t i) { return T(float(i % 5)); });
          TestTensor out = x;
          cumsum(out.view(), axis, flags, out.view());
          const std::size_t inner = axis == 0 ? 12 : axis == 1 ? 4 : 1, n = axis + 2;
          for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t place = i / inner % n, start = i - place * inner;
            double sum = 0;
            for (std::size_t k = 0; k < n; ++k)
              if (k == place ? !flags.exclusive : (k > place) == flags.reverse) sum += x.at(start + k * inner);
            ASSERT_EQ(out.at(i), sum) << x.dtype() << " axis " << axis << " flags " << bits;
          }
        }
  });
}

}  // namespace
}  // namespace plimsoll
