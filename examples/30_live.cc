// Watch a training from another terminal: `plimsoll top`, `plimsoll serve`.
//   build/examples/30_live            trains briefly and ends
//   build/examples/30_live 60         trains for about 60 seconds, so that there is time to look
#include <plimsoll/plimsoll.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.2;
  // After a login the system sets it; an example must run without.
  std::string own;
  if (!std::getenv("XDG_RUNTIME_DIR")) {
    own = (std::filesystem::temp_directory_path() / "plimsoll-example-XXXXXX").string();
    check(mkdtemp(own.data()) != nullptr, "a folder of our own");
    setenv("XDG_RUNTIME_DIR", own.c_str(), 1);
  }
  pl::LiveView live({.name = "example", .every = std::chrono::milliseconds(200)});
  std::cout << "publishing in " << live.file() << "\n";

  const pl::Tensor x = pl::random_uniform({1024, 32}, -1, 1, {.seed = 1}), y = pl::square(x).sum({1});
  pl::Sequential model({pl::layers::Dense(256, {.activation = "relu", .input_shape = {32}}), pl::layers::Dense(1)});
  model.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  const pl::Budget budget("training", 8_MiB);
  const auto begin = std::chrono::steady_clock::now();
  do {
    const pl::BudgetScope inside(budget);
    model.fit(x, y, {.epochs = 5, .batch_size = 64, .verbose = 0});
  } while (std::chrono::steady_clock::now() - begin < std::chrono::duration<double>(seconds));

  live.publish();  // Now, not at the next tick.
  check(std::filesystem::exists(live.file()), "the counters are there for others");
  std::cout << "trained; the budget's peak was " << budget.peak() << " bytes\n";
  if (!own.empty()) std::filesystem::remove_all(own);
}
