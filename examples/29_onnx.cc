// ONNX: a model is written as a file that ONNX Runtime runs, and read back: the same answers, in a budget, and trained
// on.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  const auto file = std::filesystem::temp_directory_path() / "plimsoll_29_onnx.onnx";
  pl::Sequential model({pl::layers::Conv2D(8, 3, {.padding = "same", .activation = "relu", .input_shape = {16, 16, 1}}),
                        pl::layers::MaxPooling2D(2), pl::layers::Flatten(), pl::layers::Dense(1)});
  pl::save_onnx(model, file);

  const pl::Tensor x = pl::random_uniform({8, 16, 16, 1}, -1, 1, {.seed = 1}), wanted = model.predict(x);
  const pl::OnnxModel read(file);
  const std::string input = read.inputs()[0].name;
  const pl::MemoryForecast need = read.forecast({{input, x}});
  const pl::Tensor answers = read.predict({{input, x}}, {.budget = need.smallest_budget})[0];
  std::cout << "a prediction needs " << need.peak_bytes << " bytes, " << need.smallest_budget << " at least\n";
  check((answers - wanted).sum().item<float>() < 1e-4f, "the file gives the same answers");

  pl::Model again = read.model();  // The same weights, as a model that trains.
  again.compile({.optimizer = pl::optimizers::Adam(), .loss = pl::losses::MeanSquaredError()});
  const pl::Tensor y = x.sum({1, 2});
  const pl::History run = again.fit(x, y, {.epochs = 20, .batch_size = 8, .verbose = 0});
  check(run["loss"].back() < run["loss"].front(), "what was read is trained");
  pl::save_onnx(again, file);
  check(std::abs((pl::OnnxModel(file).predict({{input, x}})[0] - again.predict(x)).sum().item<float>()) < 1e-4f,
        "and saved");
  std::filesystem::remove(file);
}
