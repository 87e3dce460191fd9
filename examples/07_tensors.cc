// Tensors: creating, computing, reading, and the gradient of a result.
#include <plimsoll/plimsoll.h>

#include <iostream>

namespace pl = plimsoll;

int main() {
  const pl::Tensor scalar = pl::constant(2);
  const pl::Tensor matrix = pl::constant({{1.f, 2.f}, {3.f, 4.f}}, {.name = "matrix"});
  std::cout << scalar << "\n" << matrix << "\n";

  // Broadcasting, reductions, views.
  const pl::Tensor rows = (matrix + pl::constant({10.f, 20.f})).sum({1});
  std::cout << rows << "\n";
  const pl::MemoryInfo before = pl::memory();
  const pl::Tensor flat = matrix.reshape({-1});
  std::cout << "reshape: " << pl::memory().num_tensors - before.num_tensors << " tensor more, "
            << pl::memory().num_bytes - before.num_bytes << " bytes more\n";

  // A line through points, by gradient descent on two variables.
  const pl::Tensor x = pl::linspace(-1, 1, 21), y = x * 3.f + 0.5f;
  const pl::Variable slope(pl::zeros({1}), {.name = "slope"}), offset(pl::zeros({1}), {.name = "offset"});
  for (int step = 0; step < 100; ++step) {
    pl::GradientTape tape;
    const pl::Tensor loss = pl::square(x * slope + offset - y).mean();
    const auto gradients = tape.gradient(loss, {slope, offset});
    slope.assign_sub(gradients[0] * 0.3f);
    offset.assign_sub(gradients[1] * 0.3f);
  }
  std::cout << "slope " << slope.value().item<float>() << ", offset " << offset.value().item<float>() << "\n";

  // Shapes that do not match are refused with an explanation.
  try {
    pl::matmul(matrix, pl::zeros({3, 2}));
  } catch (const pl::InvalidArgument& error) {
    std::cout << error.what() << "\n";
  }
  const bool right = std::abs(slope.value().item<float>() - 3) < 1e-3f && rows.at<float>({1}) == 37;
  return right ? 0 : 1;
}
