// Gradients with their own kernel compared with the same made of other operations, interleaved; and clip.
//
//   cmake --preset bench && cmake --build build-bench --target gradient_bench && build-bench/gradient_bench
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using Gradient = std::function<Tensor(const Tensor& a, const Tensor& g)>;

struct Row {
  const char* name;
  Gradient composed, fused;
};

Gradient kernel(BinaryOp op) {
  return [op](const Tensor& a, const Tensor& g) { return execute(Binary(op), a, g); };
}

Tensor composed_gelu(const Tensor& x, const Tensor& g) {
  const Tensor density = exp(x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return g * (erf(x * (1 / std::numbers::sqrt2)) * 0.5 + 0.5 + x * density);
}

Tensor composed_swish(const Tensor& x, const Tensor& g) {
  const Tensor s = sigmoid(x);
  return g * s * (1 + x * (1 - s));
}

Tensor composed_softmax(const Tensor& a, const Tensor& b) {
  const Tensor y = a.reshape({-1, 256}), g = b.reshape({-1, 256});
  return (g - (g * y).sum(-1, {.keep_dims = true})) * y;
}

// With an output that is cleared first, which the operation's is not.
Tensor fused_softmax(const Tensor& a, const Tensor& b) {
  const Tensor y = a.reshape({-1, 256}), g = b.reshape({-1, 256});
  Tensor out = zeros_like(g);
  softmax_grad(y.view(), g.view(), writable(out));
  return out;
}

std::vector<Row> all_rows() {
  constexpr double kScale = 1.0507009873554805, kAlpha = 1.6732632423543772;
  return {
      {"relu6", [](auto& x, auto& g) { return where((x > 0) && (x < 6), g, zeros_like(g)); },
       kernel(BinaryOp::relu6_grad)},
      {"elu", [](auto& y, auto& g) { return where(y < 0, g * (y + 1), g); }, kernel(BinaryOp::elu_grad)},
      {"selu", [](auto& y, auto& g) { return where(y < 0, g * (y + kScale * kAlpha), g * kScale); },
       kernel(BinaryOp::selu_grad)},
      {"gelu", composed_gelu, kernel(BinaryOp::gelu_grad)},
      {"hard_sigmoid", [](auto& y, auto& g) { return where((y > 0) && (y < 1), g * 0.2, zeros_like(g)); },
       kernel(BinaryOp::hard_sigmoid_grad)},
      {"softplus", [](auto& x, auto& g) { return g * sigmoid(x); }, kernel(BinaryOp::softplus_grad)},
      {"softsign", [](auto& x, auto& g) { return g / square(abs(x) + 1); }, kernel(BinaryOp::softsign_grad)},
      {"swish", composed_swish, kernel(BinaryOp::swish_grad)},
      {"leaky_relu", [](auto& x, auto& g) { return where(x > 0, g, g * 0.2); },
       [](auto& x, auto& g) { return execute(LeakyReluGradient(0.2), x, g); }},
      {"softmax", composed_softmax, fused_softmax},
      {"clip (forward)", [](auto& x, auto&) { return minimum(maximum(x, -1), 1); },
       [](auto& x, auto&) { return clip(x, -1, 1); }},
  };
}

double nanoseconds(const Gradient& gradient, const Tensor& a, const Tensor& g, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) {
    const TidyScope scope;
    gradient(a, g);
  }
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / times;
}

void run(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n)), slopes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i) * 0.37f) * 4, slopes[i] = std::cos(static_cast<float>(i) * 0.11f);
  const Tensor a = from_vector(values, {n}), g = from_vector(slopes, {n});
  const int times = static_cast<int>(std::clamp<std::int64_t>(400'000 / n, 1, 400));
  fmt::print("{} elements: composed ns, fused ns, ratio\n", n);
  for (const Row& row : all_rows()) {
    double composed = HUGE_VAL, fused = HUGE_VAL;
    for (int round = 0; round < 15; ++round) {
      composed = std::min(composed, nanoseconds(row.composed, a, g, times));
      fused = std::min(fused, nanoseconds(row.fused, a, g, times));
    }
    fmt::print("  {:<15} {:>10.0f} {:>10.0f} {:>6.2f}\n", row.name, composed, fused, composed / fused);
  }
}

}  // namespace
}  // namespace plimsoll

int main() {
  plimsoll::set_num_threads(1);
  for (const std::int64_t n : {256, 16384, 1 << 20}) plimsoll::run(n);
}
