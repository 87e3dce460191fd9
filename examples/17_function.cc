// A function is traced once for each shape and then runs as a plan: its memory is known before it runs.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  pl::Variable w(pl::random_normal({64, 64}, {.seed = 1}), {.name = "w"});
  int traced = 0;
  auto block = pl::function([&](const pl::Tensor& x) {
    ++traced;  // C++ code runs while tracing only
    return pl::relu(pl::matmul(pl::relu(pl::matmul(x, w)), w)) + x;
  });

  const pl::Tensor x = pl::random_normal({8, 64}, {.seed = 2});
  for (int i = 0; i < 10; ++i) block(x);
  block(pl::zeros({16, 64}));
  std::cout << "11 calls, traced " << traced << " times\n";
  check(traced == 2, "one trace for each shape");

  const pl::MemoryPlan plan = block.memory_plan(x);
  std::cout << "a call takes " << plan.peak_bytes << " bytes; no order-preserving plan takes less than "
            << plan.lower_bound_bytes << "\n";
  const auto profile = pl::profile([&] { return block(x); });
  check(profile.relative_peak_bytes == plan.peak_bytes, "it takes what the plan says, to the byte");

  // A whole training step, tape included, is a function too.
  const pl::Tensor target = pl::zeros({8, 64});
  auto step = pl::function([&](const pl::Tensor& in, const pl::Tensor& wanted) {
    pl::GradientTape tape;
    pl::Tensor loss = pl::square(pl::matmul(in, w) - wanted).mean();
    w.assign_sub(tape.gradient(loss, w) * 0.5f);
    return loss;
  });
  const float first = step(x, target).item<float>();
  for (int i = 0; i < 50; ++i) step(x, target);
  check(step(x, target).item<float>() < first, "the step learns");

  // Control flow that depends on values: cond and while_loop.
  auto halvings = pl::function([](const pl::Tensor& n) {
    return pl::while_loop([](const pl::TensorTree& s) { return s[0].tensor() > 1; },
                          [](const pl::TensorTree& s) {
                            return pl::TensorTree{s[0].tensor() / 2, s[1].tensor() + 1};
                          },
                          pl::TensorTree{n, pl::constant(0)})[1]
        .tensor();
  });
  std::cout << "1000 can be halved " << halvings(pl::constant(1000)).item<int>() << " times\n";
  check(halvings(pl::constant(1000)).item<int>() == 9, "the loop ran");
  return 0;
}
