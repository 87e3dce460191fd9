// Less memory, same result: one network trained with all the memory its steps would like, with half of it and with
// three tenths. Values that no longer fit are dropped and computed again when they are needed: it takes longer, and the
// loss is the same to the bit. The forecast knows before the first step what each budget costs.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

static pl::Sequential make_network() {
  std::vector<pl::Layer> layers;
  for (unsigned i = 0; i < 16; ++i)
    layers.push_back(
        pl::layers::Dense(64, {.activation = i % 2 ? "tanh" : "relu", .input_shape = {64}, .seed = i + 1}));
  layers.push_back(pl::layers::Dropout(0.1, {.seed = 50}));
  layers.push_back(pl::layers::Dense(1, {.seed = 51}));
  pl::Sequential network(layers);
  network.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  return network;
}

int main() {
  const pl::Tensor x = pl::random_normal({1024, 64}, {.seed = 1}), y = x.mean({1}, {.keep_dims = true});
  const pl::Dataset batches = pl::Dataset::from_tensor_slices(x, y).batch(512);
  const pl::MemoryForecast forecast = make_network().forecast({.batch_size = 512});

  // The extent: what a step takes besides parameters, optimizer state and batch.
  const std::map<std::string, std::size_t>& parts = forecast.by_category;
  const std::size_t held = parts.at("parameters") + parts.at("optimizer") + parts.at("inputs");
  const std::size_t extent = forecast.peak_bytes - held;

  std::vector<float> losses;
  for (const unsigned percent : {100u, 50u, 30u}) {
    pl::Sequential network = make_network();
    const std::size_t budget = held + extent * percent / 100;
    const pl::History history = network.fit(batches, {.epochs = 3, .verbose = 0, .budget = budget});
    std::cout << percent << " % of the extent: budget " << pl::format_bytes(budget) << ", peak "
              << pl::format_bytes(history.peak_bytes()) << ", predicted " << forecast.predicted_slowdown(budget)
              << " x the time, loss " << history["loss"].back() << "\n";
    check(history.peak_bytes() <= budget, "the budget is never passed");
    losses.push_back(history["loss"].back());
  }
  check(losses[0] == losses[1] && losses[0] == losses[2], "the loss does not depend on the budget");

  // Below the smallest budget nothing starts; the error says what would suffice, and why it cannot be less.
  pl::Sequential network = make_network();
  try {
    network.fit(batches, {.verbose = 0, .budget = forecast.smallest_budget - 1});
    check(false, "it is refused");
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n";
    check(error.smallest_sufficient_limit() == forecast.smallest_budget, "the gate is true to the byte");
  }
}
