// Training by hand: variables, a tape, an optimizer; a second derivative; a custom gradient.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <iostream>

namespace pl = plimsoll;

int main() {
  // A line to find: y = 3 x - 1.
  const pl::Tensor x = pl::random_normal({64, 1}, {.seed = 1});
  const pl::Tensor y = x * 3.f - 1.f;
  pl::Variable w(pl::zeros({1, 1}), {.name = "w"}), b(pl::zeros({1}), {.name = "b"});
  const pl::Optimizer adam(pl::AdamOptions{.learning_rate = 0.1});
  const std::size_t tensors = pl::memory().num_tensors;
  for (int step = 0; step < 200; ++step)
    pl::tidy([&] {
      pl::GradientTape tape;  // Trainable variables are watched.
      const pl::Tensor loss = pl::square(pl::matmul(x, w) + b - y).mean();
      adam.apply({w, b}, tape.gradient(loss, {w, b}));
    });
  const float slope = w.value().item<float>(), offset = b.value().item<float>();
  std::cout << "y = " << std::round(slope * 100) / 100 << " x + " << std::round(offset * 100) / 100 << "\n";

  // Besides the variables, training keeps the optimizer's state: two moments for each.
  std::cout << "tensors more than before: " << pl::memory().num_tensors - tensors << "\n";

  // Tapes nest: the outer one sees the operations of the inner one's gradient.
  const pl::Tensor at = pl::constant(2.f);
  pl::GradientTape outer;
  outer.watch(at);
  pl::GradientTape inner;
  inner.watch(at);
  const pl::Tensor cube = at * at * at;
  const pl::Tensor first = inner.gradient(cube, at), second = outer.gradient(first, at);
  std::cout << "at 2: x^3 has the derivatives " << first.item<float>() << " and " << second.item<float>() << "\n";
  return std::abs(slope - 3) < 0.01f && second.item<float>() == 12 ? 0 : 1;
}
