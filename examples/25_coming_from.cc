// The calls in docs/coming_from.md, with their names in other systems.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

// with tf.GradientTape() as tape: ...; tape.gradient(loss, [w])   |   loss.backward(); w.grad
void gradients() {
  pl::Variable w(pl::constant({2.f, 3.f}), {.name = "w"});
  pl::GradientTape tape;
  const pl::Tensor loss = pl::square(pl::Tensor(w)).sum();
  const std::vector<pl::Tensor> slopes = tape.gradient(loss, {w});
  check(slopes[0].to_vector<float>() == std::vector<float>{4, 6}, "the gradient of w squared is 2 w");
  w.assign_sub(slopes[0] * 0.5f);
  check(w.value().to_vector<float>() == std::vector<float>{0, 0}, "a step of 0.5 ends at zero");
}

// @tf.function   |   torch.compile(f)
void functions() {
  auto f = pl::function([](const pl::Tensor& x) { return pl::relu(x - 1.f).sum(); });
  check(f(pl::constant({0.f, 1.f, 3.f})).item<float>() == 2, "a function returns what its body returns");
  f(pl::constant({5.f, 5.f, 5.f}));
  check(f.trace_count() == 1, "it is traced once per signature");
}

// tf.tidy(() => ...), tf.memory().numTensors
void scopes() {
  const std::size_t before = pl::memory().num_tensors;
  const pl::Tensor y = pl::tidy([] { return (pl::ones({4}) * 3.f).sum(); });
  check(y.item<float>() == 12 && pl::memory().num_tensors == before + 1, "tidy keeps only what it returns");
}

// keras.Sequential, compile, fit, predict
void models() {
  const pl::Tensor x = pl::random_normal({64, 10}, {.seed = 1}), y = x.sum({1}, {.keep_dims = true});
  pl::Sequential model({pl::layers::Dense(16, {.activation = "relu", .input_shape = {10}, .seed = 1}),
                        pl::layers::Dense(1, {.seed = 2})});
  model.compile({.optimizer = "adam", .loss = "mse"});
  const pl::History history = model.fit(x, y, {.epochs = 3, .batch_size = 16, .verbose = 0, .budget = 64_KiB});
  check(history["loss"].back() < history["loss"].front(), "the loss falls");
  check(history.peak_bytes() <= 64_KiB, "the training stays inside its budget");
  check(model.predict(x).shape() == pl::Shape({64, 1}), "predict returns a row for each row");
}

int main() {
  gradients();
  functions();
  scopes();
  models();
  std::cout << "the calls you know, under the names used here\n";
}
