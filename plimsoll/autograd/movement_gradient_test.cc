#include <gtest/gtest.h>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

// Squared first, so that the second order is not trivial.
TensorFunction of_square(const std::function<Tensor(const Tensor&)>& f) {
  return [f](const Tensors& x) { return f(square(x[0])); };
}

TEST(MovementGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3, 4});
  expect_gradients(of_square([](const Tensor& t) { return t.transpose({2, 0, 1}); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return t.slice({0, 1, 1}, {2, 2, 2}); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return t.slice({1, 0, 0}, {1, -1, -1}); }), {x});
  expect_gradients(of_square([](const Tensor& t) {
                     return strided_slice(t, {1, 0, 3}, {-10, 3, 0}, {-1, 2, -2});
                   }),
                   {x});
  expect_gradients(of_square([](const Tensor& t) { return reverse(t, {1}); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return roll(t, 2, 2); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return pad(t, {{1, 0}, {0, 2}, {1, 1}}); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return tile(t, {2, 1, 3}); }), {x});
  expect_gradients(of_square([](const Tensor& t) { return t.expand_dims(1).squeeze({1}).reshape({4, 6}); }), {x});
}

TEST(JoiningGradient, AgreesWithDifferences) {
  const Tensor a = varied({2, 3}), b = varied({2, 2}, -1, 1, 0.8), c = varied({2, 3}, -1, 1, 0.4);
  expect_gradients([](const Tensors& x) { return concat({x[0] * x[0], x[1]}, 1); }, {a, b});
  expect_gradients([](const Tensors& x) { return stack({x[0] * x[1], x[1]}, 1); }, {a, c});
  expect_gradients(
      [](const Tensors& x) {
        const auto parts = split(square(x[0]), 3, 1);
        return parts[0] * parts[2];
      },
      {a});
}

TEST(IndexingGradient, AgreesWithDifferences) {
  const Tensor x = varied({4, 3}), rows = constant({2, 0, 2}), mask = constant({true, false, true, true});
  expect_gradients(of_square([&](const Tensor& t) { return gather(t, rows); }), {x});
  expect_gradients(of_square([&](const Tensor& t) { return gather(t, constant({1, 1}), 1); }), {x});
  expect_gradients(of_square([&](const Tensor& t) { return embedding_lookup(t, constant({{3, 0}, {1, 3}})); }), {x});
  expect_gradients(of_square([&](const Tensor& t) { return boolean_mask(t, mask); }), {x});
  expect_gradients(of_square([&](const Tensor& t) { return scatter(constant({5, 0, 5, 1}), t, {6, 3}); }), {x});
  expect_gradients([&](const Tensors& t) { return scatter_add(square(t[0]), rows, square(t[1])); },
                   {x, varied({3, 3}, -1, 1, 0.6)});
}

}  // namespace
}  // namespace plimsoll
