#include "plimsoll/ops/sparse_tensor.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <limits>
#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/ops/sparse_math.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;

using testing::HasSubstr;

using testing::ThrowsMessage;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SparseTensor small() {  // [[0, 5, 0], [0, 0, 0], [7, 0, 9]]
  return SparseTensor(constant({{0, 1}, {2, 0}, {2, 2}}), constant({5.f, 7.f, 9.f}), {3, 3});
}

TEST(Sparse, KeepsEntriesInOrder) {
  const SparseTensor s(constant({{2, 2}, {0, 1}, {2, 0}}), constant({9.f, 5.f, 7.f}), {3, 3});
  EXPECT_THAT(s.indices().to_vector<std::int64_t>(), ElementsAre(0, 1, 2, 0, 2, 2));
  EXPECT_THAT(s.values().to_vector<float>(), ElementsAre(5, 7, 9));
  EXPECT_EQ(s.num_entries(), 3);
  EXPECT_EQ(s.format(), SparseFormat::coo);
  EXPECT_EQ(s.nbytes(), 3 * 4u + 6 * 8u);
  EXPECT_THAT(s.to_dense().to_vector<float>(), ElementsAre(0, 5, 0, 0, 0, 0, 7, 0, 9));
}

TEST(Sparse, ConvertsBetweenFormatsOnTheSameValues) {
  const SparseTensor coo = small(), csr = coo.to_csr();
  EXPECT_EQ(csr.format(), SparseFormat::csr);
  EXPECT_THAT(csr.row_splits().to_vector<std::int64_t>(), ElementsAre(0, 1, 1, 3));
  EXPECT_THAT(csr.columns().to_vector<std::int64_t>(), ElementsAre(1, 0, 2));
  EXPECT_EQ(csr.values().id(), coo.values().id());
  EXPECT_EQ(csr.to_coo().indices().to_vector<std::int64_t>(), coo.indices().to_vector<std::int64_t>());
}

TEST(Sparse, TakesCompressedRowsWithColumnsInAnyOrder) {
  const SparseTensor s =
      SparseTensor::from_csr(constant({0, 1, 1, 3}), constant({1, 2, 0}), constant({5.f, 9.f, 7.f}), {3, 3});
  EXPECT_EQ(s.format(), SparseFormat::csr);
  EXPECT_THAT(s.to_dense().to_vector<float>(), ElementsAre(0, 5, 0, 0, 0, 0, 7, 0, 9));
}

TEST(Sparse, RefusesEntriesOutsideOfTheShape) {
  const Tensor values = constant({1.f, 2.f});
  EXPECT_THAT(
      [&] {
        SparseTensor(constant({{0, 1}, {1, 4}}), values, {2, 4});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("sparse: entry 1 is at [1, 4], outside of shape [2, 4]: index 4 on axis 1; use 0 to 3")));
  EXPECT_THAT(
      [&] {
        SparseTensor(constant({{-1, 0}, {1, 0}}), values, {2, 4});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("entry 0 is at [-1, 0]")));
  EXPECT_THAT(
      [&] {
        SparseTensor(constant({{0, 0}, {1, 0}}), values, {2, 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("there is no place")));
}

TEST(Sparse, RefusesOrSumsDuplicates) {
  const Tensor indices = constant({{1, 1}, {0, 0}, {1, 1}}), values = constant({1.f, 2.f, 3.f});
  EXPECT_THAT(
      [&] {
        SparseTensor(indices, values, {2, 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("entries 0 and 2 are both at [1, 1]")));
  const SparseTensor s(indices, values, {2, 2}, {.duplicates = Duplicates::sum});
  EXPECT_EQ(s.num_entries(), 2);
  EXPECT_THAT(s.to_dense().to_vector<float>(), ElementsAre(2, 0, 0, 4));
  const SparseTensor half(indices, values.cast(f16), {2, 2}, {.duplicates = Duplicates::sum});
  EXPECT_THAT(half.to_dense().cast(f32).to_vector<float>(), ElementsAre(2, 0, 0, 4));
}

TEST(Sparse, RefusesPartsThatDoNotFit) {
  const Tensor values = constant({1.f, 2.f}), indices = constant({{0, 1}, {1, 0}});
  EXPECT_THROW(SparseTensor(indices, values, {2, 2, 2}), InvalidArgument);
  EXPECT_THROW(SparseTensor(indices, constant({1.f}), {2, 2}), InvalidArgument);
  EXPECT_THROW(SparseTensor(indices, constant({{1.f, 2.f}}), {2, 2}), InvalidArgument);
  EXPECT_THROW(SparseTensor(indices.cast(f32), values, {2, 2}), InvalidArgument);
  EXPECT_THROW(SparseTensor(indices, values, {2, -1}), InvalidArgument);
  EXPECT_THROW(SparseTensor(constant({0, 1}), values, Shape::scalar()), InvalidArgument);
  EXPECT_THROW(SparseTensor(Tensor(), values, {2, 2}), InvalidArgument);
  EXPECT_THROW(small().with_values(values), InvalidArgument);
  const Tensor gone = constant({1.f, 2.f});
  gone.dispose();
  EXPECT_THROW(SparseTensor(indices, gone, {2, 2}), Disposed);
}

TEST(Sparse, RefusesRowSplitsThatDoNotRise) {
  const Tensor columns = constant({0, 1}), values = constant({1.f, 2.f});
  const auto make = [&](std::vector<int> splits) {
    return SparseTensor::from_csr(from_vector(splits), columns, values, {2, 2});
  };
  EXPECT_THAT([&] { make({1, 1, 2}); }, ThrowsMessage<InvalidArgument>(HasSubstr("row split 0 is 1")));
  EXPECT_THAT([&] { make({0, 2, 1}); }, ThrowsMessage<InvalidArgument>(HasSubstr("row split 2 is 1")));
  EXPECT_THAT([&] { make({0, 3, 2}); }, ThrowsMessage<InvalidArgument>(HasSubstr("row split 1 is 3")));
  EXPECT_THAT(
      [&] {
        make({0, 1, 1});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("row split 2 is 1"), HasSubstr("entries, 2"))));
  EXPECT_THROW(make({0, 2}), InvalidArgument);
  EXPECT_THAT(
      [&] {
        SparseTensor::from_csr(constant({0, 1, 2}), constant({0, 2}), values, {2, 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("entry 1 is at [1, 2]")));
  EXPECT_THAT(
      [&] {
        SparseTensor::from_csr(constant({0, 2, 2}), constant({1, 1}), values, {2, 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("entries 0 and 1 are both at [0, 1]")));
}

TEST(Sparse, ComesFromDenseTensorsOfEveryDtype) {
  const Tensor x = constant({{0, 3, 0}, {-2, 0, 1}});
  for (const DType dtype : {i8, i16, i32, i64, f16, bf16, f32, f64, boolean}) {
    const SparseTensor s = sparse_from_dense(x.cast(dtype));
    EXPECT_EQ(s.num_entries(), 3);
    EXPECT_EQ(s.format(), SparseFormat::csr);
    EXPECT_EQ(s.to_dense().cast(f64).to_vector<double>(), x.cast(dtype).cast(f64).to_vector<double>());
  }
  const Tensor cube = (arange(24) % 3).reshape({2, 3, 4});
  EXPECT_EQ(sparse_from_dense(cube).format(), SparseFormat::coo);
  EXPECT_EQ(sparse_from_dense(cube).to_dense().to_vector<int>(), cube.to_vector<int>());
  EXPECT_THROW(sparse_from_dense(constant(1.f)), InvalidArgument);
  EXPECT_THROW(sparse_from_dense(Tensor()), InvalidArgument);
}

TEST(Sparse, WorksWithoutEntriesAndWithoutRows) {
  const SparseTensor none = sparse_from_dense(zeros({3, 4})), no_rows = sparse_from_dense(zeros({0, 4})),
                     no_columns = sparse_from_dense(zeros({3, 0}));
  EXPECT_EQ(none.num_entries(), 0);
  for (const SparseTensor& s : {none, none.to_coo(), no_rows, no_rows.to_coo(), no_columns, no_columns.to_coo()}) {
    const std::int64_t rows = s.shape()[0], width = s.shape()[1];
    EXPECT_EQ(s.to_dense().shape(), s.shape());
    EXPECT_EQ(s.to_dense().sum().item<float>(), 0);
    EXPECT_EQ(sparse_matmul(s, ones({width, 5})).shape(), Shape({rows, 5}));
    EXPECT_EQ(sparse_matmul(s, ones({rows, 5}), {.transpose_a = true}).shape(), Shape({width, 5}));
    EXPECT_EQ(sparse_matmul(s, ones({width, 5})).sum().item<float>(), 0);
    EXPECT_EQ(sparse_matmul(s, s.transpose()).shape(), Shape({rows, rows}));
    EXPECT_EQ((s + s).num_entries(), 0);
    EXPECT_EQ((s * 2.f).num_entries(), 0);
    EXPECT_EQ((s * ones({rows, width})).num_entries(), 0);
    EXPECT_EQ(sparse_softmax(s).num_entries(), 0);
    EXPECT_EQ(s.sum({1}).shape(), Shape({rows}));
    EXPECT_EQ(s.slice_rows(0, -1).shape(), s.shape());
    EXPECT_EQ(s.max({1}).to_vector<float>(), s.to_dense().max({1}).to_vector<float>());
    EXPECT_EQ(s.transpose().shape(), Shape({width, rows}));
  }
}

TEST(Sparse, SlicesRows) {
  for (const SparseTensor& s : {small(), small().to_csr()}) {
    EXPECT_THAT(s.slice_rows(1, 2).to_dense().to_vector<float>(), ElementsAre(0, 0, 0, 7, 0, 9));
    EXPECT_THAT(s.slice_rows(0, 1).to_dense().to_vector<float>(), ElementsAre(0, 5, 0));
    EXPECT_EQ(s.slice_rows(3, -1).shape(), Shape({0, 3}));
    EXPECT_EQ(s.slice_rows(1, 2).format(), s.format());
    EXPECT_THAT([&] { s.slice_rows(2, 2); },
                ThrowsMessage<InvalidArgument>(HasSubstr("slice_rows: begin 2 and count 2 are outside of the 3 rows")));
    EXPECT_THROW(s.slice_rows(-1, 1), InvalidArgument);
  }
}

TEST(Sparse, Transposes) {
  EXPECT_THAT(small().transpose().to_dense().to_vector<float>(), ElementsAre(0, 0, 7, 5, 0, 0, 0, 0, 9));
  EXPECT_THAT(small().to_csr().transpose().to_dense().to_vector<float>(), ElementsAre(0, 0, 7, 5, 0, 0, 0, 0, 9));
  const Tensor cube = (arange(24) % 5).reshape({2, 3, 4});
  EXPECT_EQ(sparse_from_dense(cube).transpose({2, 0, -2}).to_dense().to_vector<int>(),
            cube.transpose({2, 0, 1}).to_vector<int>());
  EXPECT_THAT([] { small().transpose({0, 0}); }, ThrowsMessage<InvalidArgument>(HasSubstr("give each axis once")));
  EXPECT_THROW(small().transpose({0}), InvalidArgument);
  EXPECT_THROW(small().transpose({0, 2}), InvalidArgument);
}

TEST(SparseReduction, CountsZerosThatAreNotStored) {
  const SparseTensor s = -small();
  EXPECT_THAT(s.max({1}).to_vector<float>(), ElementsAre(0, 0, 0));
  EXPECT_EQ((-sparse_from_dense(ones({2, 2}))).max().item<float>(), -1);
  EXPECT_FLOAT_EQ(small().mean().item<float>(), 21.f / 9);
  EXPECT_EQ(small().sum({0}, {.keep_dims = true}).shape(), Shape({1, 3}));
  EXPECT_TRUE(std::isnan((s * std::numeric_limits<float>::quiet_NaN()).max().item<float>()));
  EXPECT_THROW(sparse_from_dense(constant({true, false})).sum(), InvalidArgument);
  EXPECT_THROW(sparse_from_dense(constant({1, 0})).mean(), InvalidArgument);
  EXPECT_THROW(small().sum({2}), InvalidArgument);
}

TEST(SparseProduct, LeavesOutWhatIsNotStored) {
  const Tensor b = constant({{kInfinity}, {2.f}, {1.f}});
  EXPECT_THAT(sparse_matmul(small().slice_rows(0, 2), b).to_vector<float>(), ElementsAre(10, 0));
}

TEST(SparseProduct, RefusesOperandsThatDoNotGoTogether) {
  EXPECT_THAT(
      [] {
        sparse_matmul(small(), ones({4, 2}));
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("sparse_matmul: inner sizes differ: sparse [3, 3] has 3, dense [4, 2] has 4")));
  EXPECT_THAT(
      [] {
        sparse_matmul(small(), ones({2, 3, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("not a matrix")));
  EXPECT_THAT([] { sparse_matmul(small(), small().slice_rows(0, 2)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("left sparse [3, 3] has 3, right sparse [2, 3] has 2")));
  EXPECT_THROW(sparse_matmul(small(), ones({3, 3}, f64)), InvalidArgument);
  EXPECT_THROW(sparse_matmul(small(), small().cast(f64)), InvalidArgument);
  EXPECT_THROW(sparse_matmul(small().cast(i8), ones({3, 3}, i8)), InvalidArgument);
  EXPECT_THROW(sparse_matmul(sparse_from_dense(ones({2, 2, 2})), ones({2, 2})), InvalidArgument);
  EXPECT_THROW(sparse_matmul(small(), Tensor()), InvalidArgument);
  EXPECT_THROW(small() + small().slice_rows(0, 2), InvalidArgument);
  EXPECT_THROW(small() + small().cast(f64), InvalidArgument);
  EXPECT_THAT([] { small() * ones({2, 3}); }, ThrowsMessage<InvalidArgument>(HasSubstr("[2, 3]")));
  EXPECT_THAT([] { small() * ones({2, 3, 3}); }, ThrowsMessage<InvalidArgument>(HasSubstr("does not broadcast")));
  EXPECT_THROW(sparse_softmax(small().cast(i32)), InvalidArgument);
}

TEST(Sparse, IsCountedTidiedAndDisposedOfAsItsParts) {
  const MemoryInfo before = memory();
  {
    const SparseTensor s = tidy([] { return small().to_csr() * 2.f; });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 3);
    EXPECT_EQ(memory().num_bytes, before.num_bytes + s.nbytes());
    EXPECT_THAT(s.values().to_vector<float>(), ElementsAre(10, 14, 18));
    tidy([&] { s + s; });
    EXPECT_EQ(memory().num_tensors, before.num_tensors + 3);
    const SparseTensor copy = s;
    dispose(copy);
    EXPECT_TRUE(s.is_disposed());
    EXPECT_THROW(s.to_dense(), Disposed);
    EXPECT_EQ(memory().num_tensors, before.num_tensors);
    s.dispose();
  }
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

TEST(Sparse, LeavesTheCallersPartsAlone) {
  const Tensor indices = constant({{0, 1}}).cast(i64), values = constant({5.f});
  const SparseTensor s(indices, values, {2, 2});
  s.dispose();
  EXPECT_THAT(values.to_vector<float>(), ElementsAre(5));
  EXPECT_FALSE(indices.is_disposed());
}

TEST(Sparse, PrintsWhatItIs) {
  std::ostringstream out;
  out << small();
  EXPECT_EQ(out.str(), "<SparseTensor: shape=(3, 3), dtype=float32, device=CPU:0, format=coo, entries=3>");
}

// Random tensors, of which about a third of the elements are not zero.
Tensor random_dense(const Shape& shape) {
  std::vector<double> values(shape.size());
  for (double& value : values) value = *rc::gen::inRange(0, 3) == 0 ? *rc::gen::inRange(-9, 10) : 0;
  return from_vector(values, shape);
}

std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }
void expect_equal(const SparseTensor& sparse, const Tensor& dense) {
  RC_ASSERT(sparse.shape() == dense.shape());
  RC_ASSERT(numbers(sparse.to_dense()) == numbers(dense));
}

TEST(SparseProperty, AgreesWithDenseMatrices) {
  EXPECT_TRUE(rc::check([] {
    const int m = *rc::gen::inRange(0, 7), k = *rc::gen::inRange(0, 7), n = *rc::gen::inRange(0, 40);
    const Tensor a = random_dense({m, k}), b = random_dense({k, n}), c = random_dense({m, k});
    SparseTensor s = sparse_from_dense(a), t = sparse_from_dense(c);
    const SparseTensor right = sparse_from_dense(b);
    if (*rc::gen::arbitrary<bool>()) s = s.to_coo();
    if (*rc::gen::arbitrary<bool>()) t = t.to_coo();
    const Tensor product = matmul(a, b);
    RC_ASSERT(numbers(sparse_matmul(s, b)) == numbers(product));
    RC_ASSERT(numbers(sparse_matmul(s.transpose(), b, {.transpose_a = true})) == numbers(product));
    RC_ASSERT(numbers(sparse_matmul(s, b.transpose(), {.transpose_b = true})) == numbers(product));
    RC_ASSERT(numbers(sparse_matmul(a, right)) == numbers(product));
    RC_ASSERT(numbers(sparse_matmul(a.transpose(), right.transpose(), {true, true})) == numbers(product));
    RC_ASSERT(numbers(sparse_matmul(s, random_dense({k}) * 0)) == std::vector<double>(static_cast<std::size_t>(m), 0));
    expect_equal(sparse_matmul(s, right), product);
    expect_equal(sparse_matmul(s.transpose(), right.transpose(), {true, true}), product);
    expect_equal(s + t, a + c);
    expect_equal(s - t, a - c);
    expect_equal(3 * s, 3 * a);
    expect_equal(s / 2, a / 2);
    expect_equal(s * c, a * c);
    expect_equal(c.sum({0}) * s, a * c.sum({0}));
    expect_equal(s * c.sum({1}, {.keep_dims = true}), a * c.sum({1}, {.keep_dims = true}));
    expect_equal(s / (c * c + 1), a / (c * c + 1));
    expect_equal(s.transpose(), a.transpose());
    const int begin = *rc::gen::inRange(0, m + 1), count = *rc::gen::inRange(0, m - begin + 1);
    expect_equal(s.slice_rows(begin, count), a.slice({begin}, {count}));
  }));
}

TEST(SparseProperty, AgreesWithDenseReductions) {
  EXPECT_TRUE(rc::check([] {
    const Tensor a = random_dense({*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 5)});
    const SparseTensor s = sparse_from_dense(a);
    for (const Axes& axes : {Axes(), Axes({0}), Axes({1}), Axes({2}), Axes({0, 2}), Axes({1, -1})})
      for (const bool keep : {false, true}) {
        RC_ASSERT(s.sum(axes, {keep}).shape() == a.sum(axes, {keep}).shape());
        RC_ASSERT(numbers(s.sum(axes, {keep})) == numbers(a.sum(axes, {keep})));
        RC_ASSERT(numbers(s.max(axes, {keep})) == numbers(a.max(axes, {keep})));
        const auto left = numbers(s.mean(axes, {keep})), right = numbers(a.mean(axes, {keep}));
        for (std::size_t i = 0; i < left.size(); ++i) RC_ASSERT(std::abs(left[i] - right[i]) < 1e-12);
      }
  }));
}

TEST(SparseProperty, HasTheSoftmaxOfARowOfMinusInfinities) {
  EXPECT_TRUE(rc::check([] {
    const Tensor a = random_dense({*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 4), *rc::gen::inRange(1, 6)});
    const Tensor stored = a != 0, minus = full_like(a, -std::numeric_limits<double>::infinity());
    const auto left = numbers(sparse_softmax(sparse_from_dense(a)).to_dense());
    const Tensor dense = softmax(where(stored, a, minus));
    const auto right = numbers(where(stored, dense, zeros_like(dense)));
    for (std::size_t i = 0; i < left.size(); ++i) RC_ASSERT(std::abs(left[i] - right[i]) < 1e-12);
  }));
}

TEST(SparseProperty, IsTheSameFromShuffledEntries) {
  EXPECT_TRUE(rc::check([] {
    const Tensor a = random_dense({*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 6)});
    const SparseTensor s = sparse_from_dense(a);
    std::vector<int> order(static_cast<std::size_t>(s.num_entries()));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(i)))]);
    const Tensor shuffle = from_vector(order, {order.size()});
    expect_equal(SparseTensor(gather(s.indices(), shuffle), gather(s.values(), shuffle), a.shape()), a);
    const SparseTensor twice(concat({s.indices(), gather(s.indices(), shuffle)}),
                             concat({s.values(), gather(s.values(), shuffle)}), a.shape(),
                             {.duplicates = Duplicates::sum});
    expect_equal(twice, a * 2);
  }));
}

TEST(SparseProduct, TakesIntegersAndHalves) {
  const Tensor a = constant({{0, 2, 0}, {1, 0, -3}}), b = constant({{1, 2}, {3, 4}, {5, 6}});
  for (const DType dtype : {i32, i64, f16, bf16, f32}) {
    const SparseTensor s = sparse_from_dense(a.cast(dtype));
    EXPECT_THAT(sparse_matmul(s, b.cast(dtype)).cast(i32).to_vector<int>(), ElementsAre(6, 8, -14, -16));
    EXPECT_THAT(sparse_matmul(s, sparse_from_dense(b.cast(dtype))).to_dense().cast(i32).to_vector<int>(),
                ElementsAre(6, 8, -14, -16));
    EXPECT_THAT(s.sum({1}).cast(i32).to_vector<int>(), ElementsAre(2, -2));
  }
}

}  // namespace
}  // namespace plimsoll
