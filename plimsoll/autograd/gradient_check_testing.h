// Checks gradients against differences of values, in f64, and gradients of gradients the same way.
//
//   expect_gradients([](const Tensors& x) { return matmul(x[0], x[1]); }, {normal({3, 4}), normal({4, 2})});
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensor(const Tensors&)>;

// Numbers that repeat no pattern, between low and high; the same for the same shape and phase.
inline Tensor varied(const Shape& shape, double low = -1, double high = 1, double phase = 0.3) {
  std::vector<double> values(shape.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wave = std::sin(static_cast<double>(i) * 12.9898 + phase * 78.233) * 43758.5453;
    values[i] = low + (high - low) * (wave - std::floor(wave));
  }
  return from_vector(values, shape);
}

// One number that depends on every element of f's result.
inline Tensor weighted(const TensorFunction& f, const Tensors& x) {
  const Tensor y = f(x);
  return (y * varied(y.shape(), 0.5, 1.5, 0.7)).sum();
}

inline std::vector<std::vector<double>> numeric_gradients(const TensorFunction& f, const Tensors& x, double step) {
  std::vector<std::vector<double>> gradients;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto& gradient = gradients.emplace_back();
    std::vector<double> values = x[i].to_vector<double>();
    for (double& value : values) {
      const double before = value;
      const auto at = [&](double there) {
        value = there;
        Tensors moved = x;
        moved[i] = from_vector(values, x[i].shape());
        return weighted(f, moved).item<double>();
      };
      gradient.push_back((at(before + step) - at(before - step)) / (2 * step));
      value = before;
    }
  }
  return gradients;
}

inline void expect_first_order(const TensorFunction& f, const Tensors& x, double tolerance) {
  GradientTape tape;
  for (const Tensor& source : x) tape.watch(source);
  const Tensors analytic = tape.gradient(weighted(f, x), x);
  const auto numeric = numeric_gradients(f, x, 1e-5);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (analytic[i].is_empty_handle()) {
      for (const double value : numeric[i]) EXPECT_NEAR(value, 0, tolerance) << "input " << i << " is not connected";
      continue;
    }
    ASSERT_EQ(analytic[i].shape(), x[i].shape());
    const auto values = analytic[i].to_vector<double>();
    for (std::size_t j = 0; j < values.size(); ++j)
      EXPECT_NEAR(values[j], numeric[i][j], tolerance * (1 + std::abs(numeric[i][j])))
          << "input " << i << ", element " << j;
  }
}

// The second order is checked for functions that are smooth where they are asked.
inline void expect_gradients(const TensorFunction& f, const Tensors& x, bool second_order = true,
                             double tolerance = 1e-6) {
  expect_first_order(f, x, tolerance);
  if (!second_order) return;
  expect_first_order(
      [&](const Tensors& at) {
        GradientTape inner;
        for (const Tensor& source : at) inner.watch(source);
        const Tensors gradients = inner.gradient(weighted(f, at), at);
        Tensor sum = zeros(Shape::scalar(), f64);
        for (const Tensor& gradient : gradients)
          if (!gradient.is_empty_handle()) sum = sum + (gradient * varied(gradient.shape(), 0.5, 1.5, 0.1)).sum();
        return sum;
      },
      x, tolerance * 10);
}

}  // namespace plimsoll
