// Tensor arrays: what a loop reads from and collects its results in, with gradients through all of it.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  const pl::Tensor sequence = pl::random_normal({5, 3}, {.seed = 1}), weight = pl::full({3}, 0.5f);

  pl::GradientTape tape;
  tape.watch(weight);
  pl::TensorArray inputs(pl::f32, {.size = 5}), states(pl::f32, {.size = 0, .dynamic_size = true});
  inputs.unstack(sequence);
  pl::Tensor state = pl::zeros({3});
  for (int t = 0; t < 5; ++t) {
    state = pl::tanh(inputs.read(t) + state * weight);  // Reading takes the element out.
    states.write(t, state);
  }
  const pl::Tensor all = states.stack();
  std::cout << all.shape() << "\n";
  check(all.shape() == pl::Shape({5, 3}), "a row for each step");
  check(tape.gradient(all.sum(), weight).shape() == weight.shape(), "gradients flow back through the array");

  try {
    inputs.read(0);
    check(false, "an element is read once");
  } catch (const pl::FailedPrecondition& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
