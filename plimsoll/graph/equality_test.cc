// Random programs give the same bits when run one by one, as a function and in a session, with their gradients, and
// with each pass switched off.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

using Instruction = std::tuple<unsigned, unsigned, unsigned>;  // What, and which of the values so far.

// Values are all [4, 4].
Tensor apply(unsigned what, const Tensor& a, const Tensor& b) {
  switch (what % 18) {
    case 0:
      return a + b;
    case 1:
      return a - b;
    case 2:
      return a * b;
    case 3:
      return tanh(a);
    case 4:
      return matmul(a, b) * 0.25f;
    case 5:
      return matmul(a, b, {.transpose_a = true}) * 0.25f;
    case 6:
      return a.transpose();
    case 7:
      return relu(a);
    case 8:
      return softmax(a);
    case 9:
      return a - a.mean({1}, {.keep_dims = true});
    case 10:
      return a.reshape({2, 8}).reshape({4, 4});
    case 11:
      return concat({a.slice({2, 0}, {2, 4}), b.slice({0, 0}, {2, 4})}, 0);
    case 12:
      return where(a > b, a, b * 0.5f);
    case 13:
      return a + constant({1.f, -1.f, 0.5f, 2.f});
    case 14:
      return sigmoid(a) * 2.f - 1.f;
    case 15:
      return a.sum({0}) + b;
    case 16:
      return zeros({4, 4}) + a;
    default:
      return -a;
  }
}

std::vector<Tensor> run_program(const std::vector<Instruction>& program, const Tensor& x, const Tensor& y) {
  std::vector<Tensor> values = {x, y};
  for (const auto& [what, a, b] : program)
    values.push_back(apply(what, values[a % values.size()], values[b % values.size()]));
  return {values.back(), values[values.size() / 2], values.back().sum()};
}

std::vector<std::vector<float>> elements(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> result;
  for (const Tensor& tensor : tensors)
    result.push_back(tensor.is_empty_handle() ? std::vector<float>() : tensor.to_vector<float>());
  return result;
}

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// Not comparing with ==, which says that NaN differs from itself.
bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!std::ranges::equal(a[i], b[i], {}, bits_of, bits_of)) return false;
  return true;
}

const Tensor& input(int which) {
  static const Tensor tensors[] = {random_normal({4, 4}, {.seed = 1}), random_normal({4, 4}, {.seed = 2})};
  return tensors[which];
}

RC_GTEST_PROP(Equality, AFunctionGivesTheBitsOfEager, (std::vector<Instruction> program)) {
  const auto eager = elements(run_program(program, input(0), input(1)));
  for (const Passes& passes : {Passes{}, Passes{.fold = false}, Passes{.merge = false}, Passes{.in_place = false},
                               Passes{.reorder = false}, Passes{.fuse_elementwise = false}, Passes{.fuse_dense = false},
                               Passes{false, false, false, false, false, false, false}}) {
    const auto f = function([&](Tensor x, Tensor y) { return run_program(program, x, y); }, {.passes = passes});
    RC_ASSERT(same_bits(elements(f(input(0), input(1))), eager));
    RC_ASSERT(same_bits(elements(f(input(0), input(1))), eager));
  }
}

RC_GTEST_PROP(Equality, ASessionGivesTheBitsOfEager, (std::vector<Instruction> program)) {
  Graph g;
  Tensor x, y;
  std::vector<Tensor> fetches;
  {
    const GraphScope in(g);
    x = placeholder(f32, {4, 4}, "x");
    y = placeholder(f32, {4, 4}, "y");
    fetches = run_program(program, x, y);
    for (const Tensor& gradient : gradients(fetches[2], {x, y}))
      if (!gradient.is_empty_handle()) fetches.push_back(gradient);
  }
  std::vector<Tensor> expected;
  GradientTape tape;
  tape.watch(input(0));
  tape.watch(input(1));
  expected = run_program(program, input(0), input(1));
  for (const Tensor& gradient : tape.gradient(expected[2], {input(0), input(1)}))
    if (!gradient.is_empty_handle()) expected.push_back(gradient);
  Session session(g);
  RC_ASSERT(same_bits(elements(session.run(fetches, {{x, input(0)}, {y, input(1)}})), elements(expected)));
}

RC_GTEST_PROP(Equality, GradientsThroughAFunctionAreThoseOfEager, (std::vector<Instruction> program)) {
  const auto f = function([&](Tensor x, Tensor y) { return run_program(program, x, y); });
  const auto gradient_of = [&](const auto& callable) {
    GradientTape tape;
    tape.watch(input(0));
    tape.watch(input(1));
    const std::vector<Tensor> out = callable(input(0), input(1));
    return tape.gradient(out[2] + (out[0] * out[1]).sum(), {input(0), input(1)});
  };
  const auto eager = gradient_of([&](const Tensor& x, const Tensor& y) { return run_program(program, x, y); });
  RC_ASSERT(same_bits(elements(gradient_of(f)), elements(eager)));
}

RC_GTEST_PROP(Equality, AFunctionTakesWhatItsPlanSays, (std::vector<Instruction> program)) {
  const auto f = function([&](Tensor x, Tensor y) { return run_program(program, x, y); });
  const MemoryPlan plan = f.memory_plan(input(0), input(1));
  RC_ASSERT(plan.lower_bound_bytes <= plan.peak_bytes);
  f(input(0), input(1));
  const auto info = profile([&] { return f(input(0), input(1)); });
  RC_ASSERT(info.relative_peak_bytes == plan.peak_bytes);
}

}  // namespace
}  // namespace plimsoll
