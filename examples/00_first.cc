// The program of the README: a small network trained inside a budget, and what does not fit.
#include <plimsoll/plimsoll.h>

#include <iostream>

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const pl::Tensor x = pl::random_uniform({4096, 8}, -1, 1, {.seed = 1}), y = pl::square(x).sum({1});
  pl::Sequential model({pl::layers::Dense(64, {.activation = "relu", .input_shape = {8}}), pl::layers::Dense(1)});
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  std::cout << "forecast: a step needs " << model.forecast({.batch_size = 64}).peak_bytes << " bytes\n";

  const pl::TraceRecorder recorder({.path = "run.trace"});
  const pl::History run = model.fit(x, y, {.epochs = 5, .batch_size = 64, .verbose = 0, .budget = 64_KiB});
  std::cout << "trained: peak " << run.peak_bytes() << " of " << 64_KiB << " bytes, loss falls: " << std::boolalpha
            << (run["loss"].back() < run["loss"].front() / 2) << "\n\n";
  try {
    model.fit(x, y, {.batch_size = 512, .verbose = 0, .budget = 64_KiB});
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n";
  }
}
