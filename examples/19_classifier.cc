// A classifier: definition, training, prediction; its memory before and after.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;

int main() {
  // Points on a plane, inside or outside a ring.
  const pl::Tensor x = pl::random_uniform({1024, 2}, -1, 1, {.seed = 1});
  const pl::Tensor radius = pl::square(x).sum({1}, {.keep_dims = true});
  const pl::Tensor y = (radius > 0.2f && radius < 0.7f).cast(pl::f32);

  pl::Sequential model({pl::layers::Dense(32, {.activation = "relu", .input_shape = {2}, .seed = 1}),
                        pl::layers::Dense(16, {.activation = "relu", .seed = 2}),
                        pl::layers::Dense(1, {.activation = "sigmoid", .seed = 3})});
  model.compile({.optimizer = pl::optimizers::Adam({.learning_rate = 1e-2f}),
                 .loss = pl::losses::BinaryCrossentropy(),
                 .metrics = {"accuracy", "auc"}});
  model.summary();

  const auto [train, test] = pl::Dataset::from_tensors(x, y).split({0.75, 0.25});
  const pl::History history = model.fit(train.shuffle(768, {.seed = 1}).batch(32),
                                        {.epochs = 40,
                                         .validation_data = test.batch(64),
                                         .verbose = 0,
                                         .callbacks = {pl::callbacks::EarlyStopping(
                                             {.monitor = "val_loss", .patience = 5, .restore_best_weights = true})}});
  const pl::Logs result = model.evaluate(test.batch(64));
  std::cout << "epochs " << history.num_epochs() << ", accuracy " << result["accuracy"] << ", auc " << result["auc"]
            << "\n";
  check(result["accuracy"] > 0.9f, "it has learned the ring");
  check(history["loss"].back() < history["loss"].front() / 2, "the loss has halved");

  const auto before = pl::memory();
  model.fit(train.batch(32), {.epochs = 2, .verbose = 0});
  model.evaluate(test.batch(64));
  check(pl::memory().num_bytes == before.num_bytes, "training leaves nothing behind");

  const pl::Tensor inside = model.predict(pl::constant({{0.6f, 0.f}, {0.f, 0.f}}));
  std::cout << "on the ring " << inside.at<float>({0, 0}) << ", in its middle " << inside.at<float>({1, 0}) << "\n";
  check(inside.at<float>({0, 0}) > 0.5f && inside.at<float>({1, 0}) < 0.5f, "it tells them apart");
}
