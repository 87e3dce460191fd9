#include <gtest/gtest.h>

#include <map>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/sparse_math.h"

namespace plimsoll {
namespace {

// [3, 4] with five entries, and [4, 2] with four; their first and last rows or columns are not all empty.
SparseTensor left(const Tensor& values) {
  static const Tensor indices = constant({{0, 1}, {0, 3}, {2, 0}, {2, 1}, {2, 3}});
  return SparseTensor(indices, values, {3, 4});
}
SparseTensor right(const Tensor& values) {
  static const Tensor indices = constant({{0, 0}, {1, 0}, {1, 1}, {3, 1}});
  return SparseTensor(indices, values, {4, 2});
}

TEST(SparseGradient, OfProductsAgreesWithDifferences) {
  const Tensor values = varied({5}), b = varied({4, 3}, -1, 1, 0.6), c = varied({3, 3}, -1, 1, 0.2);
  expect_gradients([](const Tensors& x) { return sparse_matmul(left(x[0]), x[1]); }, {values, b});
  expect_gradients([](const Tensors& x) { return sparse_matmul(left(x[0]).to_csr(), x[1]); }, {values, b});
  expect_gradients([](const Tensors& x) { return sparse_matmul(left(x[0]), x[1], {.transpose_a = true}); },
                   {values, c});
  expect_gradients([](const Tensors& x) { return sparse_matmul(x[1], left(x[0])); }, {values, c});
  expect_gradients([](const Tensors& x) { return sparse_matmul(left(x[0]), x[1]); }, {values, varied({4})});
}

TEST(SparseGradient, OfSparseProductsAgreesWithDifferences) {
  const Tensor a = varied({5}), b = varied({4}, -1, 1, 0.6);
  expect_gradients([](const Tensors& x) { return sparse_matmul(left(x[0]), right(x[1])).values(); }, {a, b});
  expect_gradients([](const Tensors& x) { return square(sparse_matmul(left(x[0]), right(x[1])).to_dense()); }, {a, b});
  expect_gradients(
      [](const Tensors& x) {
        const SparseTensor s = left(x[0]);
        return sparse_matmul(s, s, {.transpose_b = true}).values();
      },
      {a});
}

TEST(SparseGradient, OfTheRestAgreesWithDifferences) {
  const Tensor a = varied({5}), b = varied({5}, -1, 1, 0.6), dense = varied({3, 4}, 0.5, 2), row = varied({4}, 0.5, 2);
  const Tensor mixed = constant({{1, 1}, {0, 3}, {2, 0}, {2, 2}, {0, 0}});
  const Tensor same = constant({{1, 1}, {0, 3}, {1, 1}, {2, 2}, {0, 3}});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).to_dense()); }, {a});
  expect_gradients(
      [&](const Tensors& x) {
        return square((left(x[0]) + SparseTensor(mixed, x[1], {3, 4})).values());
      },
      {a, b});
  expect_gradients(
      [&](const Tensors& x) {
        return square(SparseTensor(same, x[0], {3, 4}, {.duplicates = Duplicates::sum}).values());
      },
      {a});
  expect_gradients([](const Tensors& x) { return (left(x[0]) * x[1]).values(); }, {a, dense});
  expect_gradients([](const Tensors& x) { return (left(x[0]) * x[1]).values(); }, {a, row});
  expect_gradients([](const Tensors& x) { return (left(x[0]) / x[1] * 3).values(); }, {a, row});
  expect_gradients([](const Tensors& x) { return sparse_softmax(left(x[0])).values(); }, {a});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).sum({0})); }, {a});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).mean({1}, {.keep_dims = true})); }, {a});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).sum()); }, {a});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).max({1})); }, {a}, false);
  expect_gradients([](const Tensors& x) { return square((-left(x[0])).max()); }, {a}, false);
  expect_gradients([](const Tensors& x) { return square(left(x[0]).to_csr().transpose().slice_rows(1, 3).values()); },
                   {a});
  expect_gradients([](const Tensors& x) { return square(left(x[0]).transpose().slice_rows(1, 3).values()); }, {a});
  expect_gradients([](const Tensors& x) { return square(sparse_from_dense(x[0]).values()); }, {dense});
}

TEST(SparseGradient, OfAMaximumIsSharedWithZerosThatAreNotStored) {
  const Tensor values = zeros({5}, f64);
  GradientTape tape;
  tape.watch(values);
  const Tensor gradient = tape.gradient(left(values).max({1}).sum(), values);
  EXPECT_EQ(gradient.to_vector<double>(), std::vector<double>(5, 0.25));
}

TEST(SparseGradient, ReachesTheValuesOfASparseTensor) {
  const SparseTensor s = sparse_from_dense(constant({{0.f, 2.f}, {3.f, 0.f}}));
  GradientTape tape;
  tape.watch(s.values());
  const Tensor loss = square(sparse_matmul(s, ones({2, 2}))).sum();
  EXPECT_EQ(tape.gradient(loss, s.values()).to_vector<float>(), (std::vector<float>{8, 12}));
}

// Everything refused at each of its allocations in turn, as refusal_test.cc does for dense operations.
std::map<std::string, TensorFunction> functions() {
  return {
      {"sparse times dense", [](const Tensors& x) { return sparse_matmul(left(x[0]), x[2]); }},
      {"transposed",
       [](const Tensors& x) {
         return sparse_matmul(x[2].transpose(), left(x[0]), {false, true});
       }},
      {"sparse times sparse", [](const Tensors& x) { return sparse_matmul(left(x[0]), right(x[1])).values(); }},
      {"add", [](const Tensors& x) { return (left(x[0]) + left(x[0]).to_csr()).to_dense(); }},
      {"softmax", [](const Tensors& x) { return sparse_softmax(left(x[0])).values(); }},
      {"max", [](const Tensors& x) { return left(x[0]).max({1}); }},
      {"multiply", [](const Tensors& x) { return (left(x[0]).transpose() * x[2]).sum({0}); }},
  };
}

TEST(SparseRefusal, ChangesNothingWhereverItComes) {
  const Tensors x = {varied({5}, 0.5, 2), varied({4}, 0.5, 2), varied({4, 3}, 0.5, 2)};
  for (const auto& [name, f] : functions()) expect_refused_anywhere(name, f, x, SIZE_MAX);
}

}  // namespace
}  // namespace plimsoll
