#include "plimsoll/ops/dense.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/ops/matmul.h"

namespace plimsoll {
namespace {

constexpr Activation kAll[] = {
    Activation::linear,       Activation::relu,     Activation::relu6,      Activation::tanh, Activation::sigmoid,
    Activation::hard_sigmoid, Activation::elu,      Activation::selu,       Activation::gelu, Activation::swish,
    Activation::softplus,     Activation::softsign, Activation::exponential};

Tensor values(const Shape& shape, double phase) { return varied(shape, -1.5, 1.5, phase).cast(f32); }

TEST(Dense, GivesTheBitsOfItsPartsOneByOne) {
  for (const Activation activation : kAll)
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{33, 70}, Shape{2, 3, 19}}) {
      const std::int64_t n = shape.back(), m = n * 2 + 3;
      const Tensor x = values(shape, 0.1), w = values({n, m}, 0.2), b = values({m}, 0.3);
      EXPECT_EQ(dense(x, w, b, activation).to_vector<float>(),
                activate(matmul(x, w) + b, activation).to_vector<float>())
          << activation_name(activation) << " " << shape.to_string();
      EXPECT_EQ(dense(x, w, {}, activation).to_vector<float>(), activate(matmul(x, w), activation).to_vector<float>());
    }
}

TEST(Dense, GradientsOfItsPartsAreTheSame) {
  const Tensor x = values({6, 9}, 0.1), w = values({9, 5}, 0.2), b = values({5}, 0.3);
  for (const Activation activation : kAll) {
    const auto gradients = [&](bool fused) {
      GradientTape tape;
      for (const Tensor& source : {x, w, b}) tape.watch(source);
      const Tensor y = fused ? dense(x, w, b, activation) : activate(matmul(x, w) + b, activation);
      return tape.gradient((y * y).sum(), {x, w, b});
    };
    const Tensors one = gradients(true), other = gradients(false);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(one[i].to_vector<float>(), other[i].to_vector<float>()) << activation_name(activation) << " " << i;
  }
}

TEST(Dense, HasGradientsOfBothOrders) {
  for (const Activation activation : {Activation::linear, Activation::tanh, Activation::sigmoid, Activation::gelu})
    expect_gradients([=](const Tensors& x) { return dense(x[0], x[1], x[2], activation); },
                     {varied({3, 4}), varied({4, 2}, -1, 1, 0.5), varied({2}, -1, 1, 0.9)});
  expect_gradients([](const Tensors& x) { return dense(x[0], x[1], {}, Activation::relu); },
                   {varied({2, 3, 4}), varied({4, 3}, -1, 1, 0.5)}, false);
}

TEST(Dense, TakesNoRows) {
  EXPECT_EQ(dense(zeros({0, 3}), zeros({3, 2}), zeros({2})).shape(), Shape({0, 2}));
  EXPECT_EQ(dense(zeros({2, 0, 3}), zeros({3, 2})).shape(), Shape({2, 0, 2}));
  EXPECT_EQ(dense(ones({1, 0}), zeros({0, 2}), ones({2})).to_vector<float>(), std::vector<float>({1, 1}));
}

TEST(Dense, RefusesWhatDoesNotGoTogether) {
  expect_refusal([] { dense(zeros({2, 3}), zeros({4, 2})); }, "x [2, 3] and w [4, 2]");
  expect_refusal([] { dense(zeros({2, 3}), zeros({3})); }, "w [3]");
  expect_refusal([] { dense(zeros({2, 3}), zeros({3, 2}), zeros({3})); }, "bias [3] does not match w [3, 2]");
  expect_refusal([] { dense(zeros({2, 3}), zeros({3, 2}, f64)); }, "float64");
  expect_refusal([] { dense(zeros({2, 3}, i32), zeros({3, 2}, i32)); }, "int32");
}

TEST(Activation, IsFoundByItsName) {
  for (const Activation activation : kAll) EXPECT_EQ(activation_of(activation_name(activation)), activation);
  EXPECT_EQ(activation_of("silu"), Activation::swish);
  EXPECT_EQ(activation_of(""), Activation::linear);
  expect_refusal([] { activation_of("rellu"); }, "\"rellu\" is not known; give one of \"linear\"");
}

}  // namespace
}  // namespace plimsoll
