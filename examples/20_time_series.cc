// A series and a recurrent network: windows, one call for each training step, and a look ahead.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;

int main() {
  std::vector<float> values(800);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.1f * static_cast<float>(i));
  const pl::Dataset windows =
      pl::timeseries_windows(pl::from_vector(values, {800, 1}), {.look_back = 16, .horizon = 1});
  const auto [train, test] = windows.split({0.8, 0.2});

  pl::Sequential model({pl::layers::LSTM(12, {.input_shape = {16, 1}, .seed = 1}), pl::layers::Dense(1, {.seed = 2})});
  model.compile({.optimizer = pl::optimizers::Adam({.learning_rate = 1e-2f}), .loss = pl::losses::MeanSquaredError()});

  std::size_t steady = 0;
  for (int epoch = 0; epoch < 12; ++epoch) {
    float loss = 0;
    for (const auto& [x, y] : train.shuffle(640, {.seed = 7}).batch(32)) loss = model.train_on_batch(x, y)["loss"];
    if (epoch % 4 == 0) std::cout << "epoch " << epoch << ": loss " << loss << "\n";
    if (epoch == 1) steady = pl::memory().num_bytes;
  }
  check(pl::memory().num_bytes == steady, "memory does not grow");
  const float error = model.evaluate(test.batch(32))["loss"];
  std::cout << "error on what it has not seen: " << error << "\n";
  check(error < 0.01f, "it predicts the next value");

  // Forty steps into the future, each from its own predictions. tidy releases the windows on the way.
  std::vector<float> seen(values.end() - 16, values.end());
  for (int step = 0; step < 40; ++step) {
    seen.push_back(pl::tidy([&] {
      const std::vector<float> last(seen.end() - 16, seen.end());
      return model.predict(pl::from_vector(last, {1, 16, 1})).item<float>();
    }));
  }
  std::cout << "in forty steps " << seen.back() << ", in truth " << std::sin(0.1f * 839) << "\n";
  check(std::abs(seen.back() - std::sin(0.1f * 839)) < 0.5f, "the future looks like the past");
  check(pl::memory().num_bytes == steady, "and nothing is left behind");
}
