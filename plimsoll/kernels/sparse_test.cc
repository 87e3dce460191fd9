#include "plimsoll/kernels/sparse.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/sparse_loops.h"
#include "plimsoll/kernels/kernel_testing.h"
#include "plimsoll/kernels/sparse_rows.h"

namespace plimsoll {
namespace {

// Every `step`-th element of a matrix, with an empty row now and then.
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t width, std::int64_t step) : rows(rows), width(width) {
    for (std::int64_t place = 0; place < rows * width; ++place) {
      if (place % width == 0) splits.push_back(static_cast<std::int64_t>(columns.size()));
      if (place % step == 0 && place / width % 5 != 3) columns.push_back(place % width);
    }
    splits.push_back(static_cast<std::int64_t>(columns.size()));
  }
  SparseRows view() const { return {splits.data(), columns.data(), rows, width}; }
  Shape entries() const { return {columns.size()}; }
  std::int64_t rows, width;
  std::vector<std::int64_t> splits, columns;
};

double value_of(std::int64_t i) { return std::sin(static_cast<double>(i) * 1.7); }

template <class T>
void expect_products(std::int64_t n) {
  const Matrix a(37, 29, 3);
  const TestTensor values = TestTensor::from<T>(a.entries(), value_of), b = TestTensor::from<T>({29, n}, value_of),
                   x = TestTensor::from<T>({37, n}, value_of);
  TestTensor out(kDTypeOf<T>, {37, n}), dots(kDTypeOf<T>, a.entries());
  sparse_matmul(a.view(), values.view(), b.view(), out.view());
  sparse_row_dots(a.view(), x.view(), b.view(), dots.view());
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (std::int64_t k = a.splits[static_cast<std::size_t>(r)]; k < a.splits[static_cast<std::size_t>(r) + 1]; ++k)
        sum += values.at(static_cast<std::size_t>(k)) *
               b.at(static_cast<std::size_t>(a.columns[static_cast<std::size_t>(k)] * n + c));
      ASSERT_NEAR(out.at(static_cast<std::size_t>(r * n + c)), sum, tolerance) << n << ": " << r << ", " << c;
    }
    for (std::int64_t k = a.splits[static_cast<std::size_t>(r)]; k < a.splits[static_cast<std::size_t>(r) + 1]; ++k) {
      double sum = 0;
      for (std::int64_t c = 0; c < n; ++c)
        sum += x.at(static_cast<std::size_t>(r * n + c)) *
               b.at(static_cast<std::size_t>(a.columns[static_cast<std::size_t>(k)] * n + c));
      ASSERT_NEAR(dots.at(static_cast<std::size_t>(k)), sum, tolerance * 10) << n << ": " << k;
    }
  }
}

TEST(SparseKernel, MultipliesEveryWidth) {
  for (const std::int64_t n : {1, 3, 7, 8, 9, 31, 64, 100, 129, 300}) {
    expect_products<float>(n);
    expect_products<double>(n);
  }
}

template <class T>
void expect_alike(const SparseLoopsOf<T>& a, const SparseLoopsOf<T>& b) {
  const Matrix m(13, 11, 3);
  const std::int64_t n = 77;
  const TestTensor values = TestTensor::from<T>(m.entries(), value_of), x = TestTensor::from<T>({13, n}, value_of);
  TestTensor first(kDTypeOf<T>, {13, n}), second = first;
  const SparseBlock<T> block = {values.data<T>(), m.splits.data(), m.columns.data(), 0, 13};
  a.multiply(block, x.data<T>(), n, 0, n, first.data<T>());
  b.multiply(block, x.data<T>(), n, 0, n, second.data<T>());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first.at(i), second.at(i), 1e-5);
}

TEST(SparseKernel, IsAlikeOnEveryInstructionSet) {
  for (const SparseLoops* loops : every_sparse_loops()) {
    expect_alike(baseline::sparse_loops.f32, loops->f32);
    expect_alike(baseline::sparse_loops.f64, loops->f64);
  }
}

TEST(SparseKernel, GivesTheSameBitsOnOneAndTwoThreadsAndTakesNoMemory) {
  const Matrix a(700, 500, 7);
  const TestTensor values = TestTensor::from<float>(a.entries(), value_of),
                   b = TestTensor::from<float>({500, 200}, value_of);
  const TestTensor rows = TestTensor::from<std::int64_t>(a.entries(), [](std::int64_t i) { return i / 70; });
  TestTensor out(f32, {700, 200}), dots(f32, a.entries()), soft(f32, a.entries());
  TestTensor out_too = out, dots_too = dots, soft_too = soft;
  set_num_threads(1);
  sparse_matmul(a.view(), values.view(), b.view(), out.view());
  sparse_row_dots(a.view(), out.view(), b.view(), dots.view());
  softmax_runs(values.view(), rows.view(), soft.view());
  set_num_threads(2);
  sparse_matmul(a.view(), values.view(), b.view(), out_too.view());  // Starts the workers.
  const std::size_t before = heap_allocations();
  sparse_matmul(a.view(), values.view(), b.view(), out_too.view());
  sparse_row_dots(a.view(), out_too.view(), b.view(), dots_too.view());
  softmax_runs(values.view(), rows.view(), soft_too.view());
  EXPECT_EQ(heap_allocations(), before);
  EXPECT_EQ(std::memcmp(out.data<float>(), out_too.data<float>(), out.size() * 4), 0);
  EXPECT_EQ(std::memcmp(dots.data<float>(), dots_too.data<float>(), dots.size() * 4), 0);
  EXPECT_EQ(std::memcmp(soft.data<float>(), soft_too.data<float>(), soft.size() * 4), 0);
}

TEST(SparseKernel, TransposesTwiceToItself) {
  const Matrix a(37, 29, 3);
  const std::size_t entries = a.columns.size();
  std::vector<std::int64_t> splits(30), columns(entries), order(entries), back_splits(38), back_columns(entries),
      back_order(entries);
  sparse_transpose(a.view(), splits.data(), columns.data(), order.data());
  sparse_transpose({splits.data(), columns.data(), 29, 37}, back_splits.data(), back_columns.data(), back_order.data());
  EXPECT_EQ(back_splits, a.splits);
  EXPECT_EQ(back_columns, a.columns);
  for (std::size_t k = 0; k < entries; ++k)
    EXPECT_EQ(order[static_cast<std::size_t>(back_order[k])], static_cast<std::int64_t>(k));
}

}  // namespace
}  // namespace plimsoll
